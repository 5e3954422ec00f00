"""The sum and the norm in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.kernels.add_rms_norm import EPSILON
from duologue.kernels.scaled import ScaledRows, scale_rows


def add_rms_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None
) -> Tensor:
    """See the package."""
    return _add_and_norm(x, delta, weight, delta_scale).to(x.dtype)


def add_rms_norm_scaled(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None
) -> ScaledRows:
    """See the package."""
    return scale_rows(_add_and_norm(x, delta, weight, delta_scale))


def embed_rms_norm(x: Tensor, table: Tensor, ids: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """See the package."""
    total = x + F.embedding(ids, table)
    return total, _norm(total, weight).to(x.dtype)


def _add_and_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None
) -> Tensor:
    if delta is not None:
        if delta_scale is not None:
            delta = delta.float() * delta_scale[:, None]
        x.copy_(x + delta)
    return _norm(x, weight)


def _norm(x: Tensor, weight: Tensor) -> Tensor:
    wide = x.float()
    mean = wide.square().mean(dim=1, keepdim=True)
    return wide * (weight.float() * torch.rsqrt(mean + EPSILON))
