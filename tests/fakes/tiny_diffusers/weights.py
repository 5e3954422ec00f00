"""Weights drawn from one generator in the order of their names: the same on every machine."""

from __future__ import annotations

from typing import TypeVar

import torch

M = TypeVar("M", bound=torch.nn.Module)


def drawn(module: M, seed: int) -> M:
    """Fill a module so that signals neither vanish nor explode on their way through it."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(module.named_parameters()):
            if not weight.is_floating_point():
                continue
            noise = torch.randn(weight.shape, generator=generator)
            if weight.ndim > 1:
                weight.copy_(noise * weight[0].numel() ** -0.5)
            elif "norm" in name.lower() and name.endswith("weight"):
                weight.copy_(1 + 0.1 * noise)
            else:
                weight.copy_(0.02 * noise)
    return module.eval()
