"""The residual sum and its norm."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.kernels.add_rms_norm import add_rms_norm
from tests.kernels.judge import DEVICE, FP8_FRACTION, Kernel, assert_as_good, noise, strided

pytestmark = pytest.mark.torch

SIZES = [(1, 64), (3, 100), (5, 129)]


def exact_norm(x: Tensor, weight: Tensor) -> Tensor:
    wide = x.double()
    return wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-8) * weight.double()


@pytest.mark.parametrize("shape", SIZES)
def test_the_sum_is_kept_and_its_norm_returned(
    kernel: Kernel, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    x, delta = noise(*shape, dtype=dtype), strided(noise(*shape, dtype=dtype))
    weight = noise(shape[1], dtype=dtype)
    total = x + delta
    kept = strided(x)
    got = kernel("add_rms_norm").add_rms_norm(kept, delta, weight, None)
    assert torch.equal(kept, total)
    simple = F.rms_norm(total, (shape[1],), weight, 1e-8)
    assert_as_good(got, simple, exact_norm(total, weight))


def test_without_a_sum_the_stream_is_left_alone(kernel: Kernel) -> None:
    x, weight = noise(4, 96), noise(96)
    before = x.clone()
    got = kernel("add_rms_norm").add_rms_norm(x, None, weight, None)
    assert torch.equal(x, before)
    assert_as_good(got, F.rms_norm(x, (96,), weight, 1e-8), exact_norm(x, weight))


def test_rows_in_eight_bits_stand_for_the_norm(narrow_kernel: Kernel) -> None:
    x, delta, weight = noise(4, 96), noise(4, 96), noise(96)
    delta_scale = noise(4).abs() * torch.tensor([1e-3, 1.0, 30.0, 1e3], device=DEVICE)
    total = x + delta * delta_scale[:, None]
    got = narrow_kernel("add_rms_norm").add_rms_norm_scaled(x, delta, weight, delta_scale)
    assert torch.allclose(x, total, rtol=1e-6)
    exact = exact_norm(total, weight)
    off = (got.values.double() * got.scale.double()[:, None] - exact).abs()
    # Three bits of fraction: half a unit is a sixteenth of the value.
    assert (off <= exact.abs() / FP8_FRACTION + got.scale[:, None] * 2**-9).all()


def test_an_embedding_is_added_before_the_norm(kernel: Kernel, dtype: torch.dtype) -> None:
    x, table, weight = strided(noise(5, 72, dtype=dtype)), noise(11, 72, dtype=dtype), noise(72)
    weight = weight.to(dtype)
    ids = torch.tensor([[0, 9], [10, 9], [3, 9], [3, 9], [7, 9]], dtype=torch.int32, device=DEVICE)
    total, got = kernel("add_rms_norm").embed_rms_norm(x, table, ids[:, 0], weight)
    expected = x + table[ids[:, 0].long()]
    assert torch.equal(total, expected)
    simple = F.rms_norm(expected, (72,), weight, 1e-8)
    assert_as_good(got, simple, exact_norm(expected, weight))


def test_the_implementation_follows_the_device() -> None:
    x, weight = noise(2, 32), noise(32)
    assert_as_good(
        add_rms_norm(x, None, weight), F.rms_norm(x, (32,), weight, 1e-8), exact_norm(x, weight)
    )
