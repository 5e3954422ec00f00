"""Attention over the steps of one frame."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from duologue.kernels.depth_attention import depth_attention
from tests.kernels.judge import DEVICE, Kernel, assert_as_good, noise, strided

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("heads", "size", "steps"), [(1, 8, 3), (2, 24, 8)])
def test_a_step_sees_those_before_it(
    kernel: Kernel, heads: int, size: int, steps: int, dtype: torch.dtype
) -> None:
    rows = 3
    kept = torch.full((rows, 2, heads, steps, size), float("nan"), dtype=dtype, device=DEVICE)
    inputs = [noise(rows, 3 * heads * size, dtype=dtype) for _ in range(steps)]
    for step, qkv in enumerate(inputs):
        got = kernel("depth_attention").depth_attention(strided(qkv), kept, step)
        query = qkv[:, : heads * size].view(rows, heads, 1, size)
        past = torch.stack(inputs[: step + 1], 1).view(rows, step + 1, 3, heads, size)
        keys, values = past[:, :, 1].transpose(1, 2), past[:, :, 2].transpose(1, 2)
        simple = F.scaled_dot_product_attention(query, keys, values).flatten(1)
        wide = (each.double() for each in (query, keys, values))
        exact = F.scaled_dot_product_attention(*wide).flatten(1)
        assert_as_good(got, simple, exact)


def test_the_implementation_follows_the_device() -> None:
    kept = torch.zeros(2, 2, 1, 4, 8, device=DEVICE)
    qkv = noise(2, 24)
    assert_as_good(depth_attention(qkv, kept, 0), qkv[:, 16:], qkv[:, 16:].double())
