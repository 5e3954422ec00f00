"""How results are judged: against float64, by what torch itself achieves in the same type."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

FP8_FRACTION = 16
"""Three bits of fraction round to a sixteenth of the value."""


@dataclass(frozen=True)
class Kernel:
    """One implementation of every operation, and the type that it is tried with."""

    name: str
    dtype: torch.dtype

    def __call__(self, operation: str) -> ModuleType:
        return import_module(f"duologue.kernels.{operation}.{self.name}")

    def __str__(self) -> str:
        return f"{self.name}-{str(self.dtype).removeprefix('torch.')}"


def noise(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Tensor:
    """Fresh random numbers."""
    return (torch.randn(*shape, device=DEVICE) * scale).to(dtype)


def strided(x: Tensor) -> Tensor:
    """Make the same values lie apart, with not-a-numbers between them."""
    rows, size = x.shape
    wide = torch.full((rows, size + 24), float("nan"), dtype=x.dtype, device=x.device)
    wide[:, 8 : 8 + size] = x
    return wide[:, 8 : 8 + size]


def assert_as_good(got: Tensor, torch_s: Tensor, exact: Tensor) -> None:
    """Hold a result to twice the error of torch's, and one unit in the last place.

    Args:
        got: The result; not-a-numbers never pass.
        torch_s: What plain torch computes in the same type.
        exact: The same in float64.
    """
    assert got.dtype == torch_s.dtype
    assert got.shape == exact.shape
    unit = torch.finfo(got.dtype).eps * exact.abs().max()
    worst = (got.double() - exact).abs().max()
    allowed = 2 * (torch_s.double() - exact).abs().max() + unit
    assert worst <= allowed, f"off by {worst:.3g}, allowed {allowed:.3g}"
