"""The scaled residual sum and its norm."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from duologue.kernels.add_layer_norm import add_layer_norm
from tests.kernels.judge import Kernel, assert_as_good, noise, strided

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("shape", [(1, 64), (3, 100), (5, 129)])
def test_the_sum_is_kept_and_its_norm_returned(
    kernel: Kernel, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    x, delta = noise(*shape, dtype=dtype), noise(*shape, dtype=dtype)
    scale, weight, bias = (noise(shape[1], dtype=dtype) for _ in range(3))
    exact = x.double() + scale.double() * delta.double()
    kept = strided(x)
    got = kernel("add_layer_norm").add_layer_norm(kept, strided(delta), scale, weight, bias)
    assert_as_good(kept, x + scale * delta, exact)
    # Judged by the norm of what was kept: what was rounded before is not the norm's to answer for.
    size = (shape[1],)
    simple = F.layer_norm(kept, size, weight, bias, 1e-5)
    wide = (each.double() for each in (weight, bias))
    assert_as_good(got, simple, F.layer_norm(kept.double(), size, *wide, 1e-5))


def test_without_a_sum_the_stream_is_left_alone(kernel: Kernel) -> None:
    x, weight, bias = noise(4, 96) + 3, noise(96), noise(96)
    before = x.clone()
    got = kernel("add_layer_norm").add_layer_norm(x, None, None, weight, bias)
    assert torch.equal(x, before)
    wide = (each.double() for each in (weight, bias))
    exact = F.layer_norm(x.double(), (96,), *wide, 1e-5)
    assert_as_good(got, F.layer_norm(x, (96,), weight, bias, 1e-5), exact)


def test_the_implementation_follows_the_device() -> None:
    x, delta, weight, bias = noise(2, 32), noise(2, 32), noise(32), noise(32)
    total = x + delta
    got = add_layer_norm(x, delta, None, weight, bias)
    wide = (each.double() for each in (weight, bias))
    exact = F.layer_norm(total.double(), (32,), *wide, 1e-5)
    assert_as_good(got, F.layer_norm(total, (32,), weight, bias, 1e-5), exact)
