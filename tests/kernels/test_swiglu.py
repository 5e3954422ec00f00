"""The gate of a feed-forward layer."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from duologue.kernels.swiglu import swiglu
from tests.kernels.judge import FP8_FRACTION, Kernel, assert_as_good, noise, strided

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("shape", [(1, 1), (3, 100), (2, 1100)])
def test_one_half_gates_the_other(
    kernel: Kernel, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    rows, size = shape
    x = strided(noise(rows, 2 * size, dtype=dtype, scale=3))
    got = kernel("swiglu").swiglu(x)
    gate, up = x.chunk(2, 1)
    exact = F.silu(gate.double()) * up.double()
    assert_as_good(got, F.silu(gate) * up, exact)


def test_rows_in_eight_bits_stand_for_the_product(narrow_kernel: Kernel) -> None:
    x, scale = noise(3, 200), noise(3).abs() + 0.01
    got = narrow_kernel("swiglu").swiglu_scaled(x, scale)
    gate, up = (x.double() * scale.double()[:, None]).chunk(2, 1)
    exact = F.silu(gate) * up
    off = (got.values.double() * got.scale.double()[:, None] - exact).abs()
    assert (off <= exact.abs() / FP8_FRACTION + got.scale[:, None] * 2**-9).all()
    assert (got.values.float().abs().amax(1) == 448).all()


def test_the_implementation_follows_the_device() -> None:
    x = noise(2, 64)
    gate, up = x.chunk(2, 1)
    assert_as_good(swiglu(x), F.silu(gate) * up, F.silu(gate.double()) * up.double())
