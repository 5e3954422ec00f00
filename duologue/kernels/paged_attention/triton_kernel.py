"""Attention over pages on a GPU.

Bound by reading keys and values once, so nothing is done with tensor cores: each of a block's rows
keeps a largest score, a sum and a result of its own, and they are joined at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from duologue.kernels.pages import Rows

_PROGRAMS = 2048
"""As many are wanted: fifteen for each multiprocessor of an H200."""

_MOST_SPLITS = 8


class Tiles(NamedTuple):
    """How the work is cut: positions of a block, how many are on their way, warps."""

    block: int = 32
    stages: int = 3
    warps: int = 4


TILES = Tiles()
EIGHT_BIT_TILES = Tiles(stages=4)
"""The best of some fifty on an H200: 4.56 and 4.33 TB/s at 64 rows with 3000 positions each."""


@triton.jit
def _attend(
    query_ptr, pool_ptr, table_ptr, slots_ptr, first_ptr, positions_ptr,
    out_ptr, largest_ptr, total_ptr,
    query_stride, page_stride, side_stride, head_stride, width, scale,
    HEADS: tl.constexpr, PAGE: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr,
    SPLITS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    split = tl.program_id(1)
    end = tl.load(positions_ptr + row) + 1
    first = tl.minimum(tl.load(first_ptr + row), end)
    # Blocks begin at multiples of their size: where a page holds whole ones, one look-up is enough.
    aligned = first // BLOCK * BLOCK
    share = tl.cdiv(tl.cdiv(end - aligned, SPLITS), BLOCK) * BLOCK
    begin = aligned + split * share
    last = tl.minimum(begin + share, end)

    channels = tl.arange(0, PADDED)
    inside = channels < SIZE
    lanes = tl.arange(0, BLOCK)
    query = tl.load(query_ptr + row * query_stride + head * SIZE + channels, mask=inside, other=0.0)
    query = query.to(tl.float32) * scale
    largest = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, PADDED), tl.float32)
    table = table_ptr + tl.load(slots_ptr + row).to(tl.int64) * width
    pages = pool_ptr + head * head_stride + channels[None, :]
    for start in tl.range(begin, last, BLOCK, num_stages=STAGES):
        position = start + lanes
        seen = (position >= first) & (position < last)
        if PAGE % BLOCK == 0:
            page = tl.load(table + start // PAGE % width).to(tl.int64)
            place = pages + page * page_stride + ((start % PAGE + lanes) * SIZE)[:, None]
        else:
            numbers = tl.load(table + position // PAGE % width, mask=seen, other=0).to(tl.int64)
            place = pages + (numbers * page_stride + position % PAGE * SIZE)[:, None]
        mask = seen[:, None] & inside[None, :]
        key = tl.load(place, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(place + side_stride, mask=mask, other=0.0).to(tl.float32)
        score = tl.where(seen, tl.sum(key * query[None, :], 1), -1e30)
        new = tl.maximum(largest, score)
        weight = tl.where(seen, tl.exp(score - new), 0.0)
        shrink = tl.exp(largest - new)
        total = total * shrink + weight
        result = result * shrink[:, None] + weight[:, None] * value
        largest = new
    most = tl.max(largest, 0)
    weight = tl.exp(largest - most)
    total_of_all = tl.sum(total * weight, 0)
    joined = tl.sum(result * weight[:, None], 0)
    part = (row * HEADS + head) * SPLITS + split
    if SPLITS == 1:
        joined = joined / tl.maximum(total_of_all, 1e-30)
    else:
        tl.store(largest_ptr + part, most)
        tl.store(total_ptr + part, total_of_all)
    out = out_ptr + part * SIZE + channels
    tl.store(out, joined.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _join(
    parts_ptr, largest_ptr, total_ptr, out_ptr,
    SIZE: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    channels = tl.arange(0, PADDED)
    inside = channels < SIZE
    splits = head * SPLITS + tl.arange(0, SPLITS)
    largest = tl.load(largest_ptr + splits)
    weight = tl.exp(largest - tl.max(largest, 0))
    total = tl.maximum(tl.sum(tl.load(total_ptr + splits) * weight, 0), 1e-30)
    place = parts_ptr + splits[:, None] * SIZE + channels[None, :]
    parts = tl.load(place, mask=inside[None, :], other=0.0)
    joined = tl.sum(parts * weight[:, None], 0) / total
    tl.store(out_ptr + head * SIZE + channels, joined.to(out_ptr.dtype.element_ty), mask=inside)


def paged_attention(
    query: Tensor,
    pool: Tensor,
    rows: Rows,
    longest: int | None,
    splits: int | None = None,
    tiles: Tiles | None = None,
) -> Tensor:
    """See the package.

    Args:
        splits: Into how many shares a row's keys are cut, a power of two; None: as suits.
    """
    _, _, heads, page_size, size = pool.shape
    count = len(query)
    tiles = tiles or (EIGHT_BIT_TILES if pool.dtype.itemsize == 1 else TILES)
    splits = splits or _splits(count * heads, longest, tiles.block)
    padded = triton.next_power_of_2(size)
    out = torch.empty((count, heads * size), dtype=query.dtype, device=query.device)
    parts = largest = total = out
    if splits > 1:
        shape = (count * heads, splits)
        parts = torch.empty((*shape, size), dtype=torch.float32, device=query.device)
        largest = torch.empty(shape, dtype=torch.float32, device=query.device)
        total = torch.empty(shape, dtype=torch.float32, device=query.device)
    _attend[(count * heads, splits)](
        query, pool, rows.table, rows.slots, rows.first, rows.positions,
        parts, largest, total,
        query.stride(0), *pool.stride()[:3], rows.table.shape[1], size**-0.5,
        heads, page_size, size, padded, splits, tiles.block, tiles.stages,
        num_warps=tiles.warps,
    )  # fmt: skip
    if splits > 1:
        _join[(count * heads,)](parts, largest, total, out, size, padded, splits, num_warps=1)
    return out


def _splits(heads: int, longest: int | None, block: int) -> int:
    splits = 1
    while (
        splits < _MOST_SPLITS
        and splits * heads < _PROGRAMS
        and (longest is None or 2 * splits * block <= longest + block)
    ):
        splits *= 2
    return splits
