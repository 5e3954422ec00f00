"""Attention over pages."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.kernels.paged_attention import paged_attention
from duologue.kernels.scaled import FP8
from tests.kernels.judge import Kernel, assert_as_good, noise, strided
from tests.kernels.paged import Cache, fill

pytestmark = pytest.mark.torch

# Within a page; at its edges; a slid window whose pages have gone once around; masked.
SPANS = [(0, 0), (3, 14), (0, 31), (70, 93), None]


def attended(query: Tensor, cache: Cache, heads: int, size: int, dtype: torch.dtype) -> Tensor:
    """What torch's own attention makes of it, in some type."""
    results = []
    for row, (keys, values) in enumerate(zip(cache.keys, cache.values, strict=True)):
        if not len(keys):
            results.append(torch.zeros(heads * size, dtype=dtype, device=query.device))
            continue
        one = query[row].view(heads, 1, size).to(dtype)
        sides = (each.to(dtype).transpose(0, 1) for each in (keys, values))
        results.append(F.scaled_dot_product_attention(one, *sides).flatten())
    return torch.stack(results)


@pytest.mark.parametrize("in_eight_bits", [False, True])
@pytest.mark.parametrize("size", [16, 24])
def test_a_row_sees_its_positions_and_nothing_else(
    kernel: Kernel, dtype: torch.dtype, in_eight_bits: bool, size: int
) -> None:
    cache = fill(SPANS, 2, size, 8, FP8 if in_eight_bits else dtype)
    query = strided(noise(len(SPANS), 2 * size, dtype=dtype))
    got = kernel("paged_attention").paged_attention(query, cache.pool, cache.rows, None)
    simple = attended(query, cache, 2, size, dtype)
    assert_as_good(got, simple, attended(query, cache, 2, size, torch.float64))
    assert not got[4].any()


def test_positions_may_go_round_in_a_single_page(kernel: Kernel, dtype: torch.dtype) -> None:
    cache = fill([(75, 102)], 2, 16, 32, dtype)
    ring = torch.full((2, 2, 2, 32, 16), float("nan"), dtype=dtype, device=cache.pool.device)
    for offset, position in enumerate(range(75, 103)):
        ring[1, 0, :, position % 32] = cache.keys[0][offset]
        ring[1, 1, :, position % 32] = cache.values[0][offset]
    rows = cache.rows._replace(table=torch.ones_like(cache.rows.table[:, :1]))
    query = noise(1, 32, dtype=dtype)
    got = kernel("paged_attention").paged_attention(query, ring, rows, 28)
    simple = attended(query, cache, 2, 16, dtype)
    assert_as_good(got, simple, attended(query, cache, 2, 16, torch.float64))


@pytest.mark.parametrize("splits", [1, 2, 8])
def test_shares_join_to_the_whole(splits: int) -> None:
    from duologue.kernels.paged_attention import triton_kernel

    cache = fill([(0, 0), (5, 120), (100, 217)], 2, 16, 32, torch.float32)
    query = noise(3, 32)
    tiles = triton_kernel.Tiles(block=16)
    got = triton_kernel.paged_attention(query, cache.pool, cache.rows, None, splits, tiles)
    simple = attended(query, cache, 2, 16, torch.float32)
    assert_as_good(got, simple, attended(query, cache, 2, 16, torch.float64))


def test_the_implementation_follows_the_device() -> None:
    cache = fill([(0, 5)], 2, 16, 8, torch.float32)
    query = noise(1, 32)
    got = paged_attention(query, cache.pool, cache.rows)
    simple = attended(query, cache, 2, 16, torch.float32)
    assert_as_good(got, simple, attended(query, cache, 2, 16, torch.float64))
