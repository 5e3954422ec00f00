"""The gate in plain torch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from duologue.kernels.scaled import ScaledRows, scale_rows


def swiglu(gate_up: Tensor) -> Tensor:
    """See the package."""
    gate, up = gate_up.float().chunk(2, dim=1)
    return (F.silu(gate) * up).to(gate_up.dtype)


def swiglu_scaled(gate_up: Tensor, row_scale: Tensor) -> ScaledRows:
    """See the package."""
    gate, up = (gate_up.float() * row_scale[:, None]).chunk(2, dim=1)
    return scale_rows(F.silu(gate) * up)
