"""Turning and keeping on a GPU: one program for each row and head."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from duologue.kernels.pages import Rows


@triton.jit
def _rope_kv_write(
    qkv_ptr, scale_ptr, cos_ptr, sin_ptr, query_ptr, pool_ptr,
    table_ptr, slots_ptr, positions_ptr,
    qkv_stride, page_stride, side_stride, head_stride, width,
    HEADS: tl.constexpr, PAGE: tl.constexpr, SIZE: tl.constexpr, HALF: tl.constexpr,
    IS_SCALED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pair = tl.arange(0, HALF)
    inside = pair < SIZE // 2
    cos = tl.load(cos_ptr + row * (SIZE // 2) + pair, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + row * (SIZE // 2) + pair, mask=inside, other=0.0)
    scale = 1.0
    if IS_SCALED:
        scale = tl.load(scale_ptr + row)
    even = qkv_ptr + row * qkv_stride + head * SIZE + 2 * pair
    query_real = tl.load(even, mask=inside, other=0.0).to(tl.float32) * scale
    query_imag = tl.load(even + 1, mask=inside, other=0.0).to(tl.float32) * scale
    even += HEADS * SIZE
    key_real = tl.load(even, mask=inside, other=0.0).to(tl.float32) * scale
    key_imag = tl.load(even + 1, mask=inside, other=0.0).to(tl.float32) * scale
    even += HEADS * SIZE
    value_real = tl.load(even, mask=inside, other=0.0).to(tl.float32) * scale
    value_imag = tl.load(even + 1, mask=inside, other=0.0).to(tl.float32) * scale

    out = query_ptr + (row * HEADS + head) * SIZE + 2 * pair
    kind = query_ptr.dtype.element_ty
    tl.store(out, (query_real * cos - query_imag * sin).to(kind), mask=inside)
    tl.store(out + 1, (query_real * sin + query_imag * cos).to(kind), mask=inside)

    position = tl.load(positions_ptr + row)
    kept = pair < tl.where(position >= 0, SIZE // 2, 0)
    position = tl.maximum(position, 0)
    slot = tl.load(slots_ptr + row).to(tl.int64)
    page = tl.load(table_ptr + slot * width + position // PAGE % width).to(tl.int64)
    out = pool_ptr + page * page_stride + head * head_stride + position % PAGE * SIZE + 2 * pair
    kind = pool_ptr.dtype.element_ty
    tl.store(out, (key_real * cos - key_imag * sin).to(kind), mask=kept)
    tl.store(out + 1, (key_real * sin + key_imag * cos).to(kind), mask=kept)
    tl.store(out + side_stride, value_real.to(kind), mask=kept)
    tl.store(out + side_stride + 1, value_imag.to(kind), mask=kept)


def rope_kv_write(
    qkv: Tensor,
    angles: tuple[Tensor, Tensor],
    pool: Tensor,
    rows: Rows,
    row_scale: Tensor | None,
) -> Tensor:
    """See the package."""
    _, _, heads, page_size, size = pool.shape
    query = torch.empty((len(qkv), heads * size), dtype=qkv.dtype, device=qkv.device)
    _rope_kv_write[(len(qkv), heads)](
        qkv, qkv if row_scale is None else row_scale, *angles, query, pool,
        rows.table, rows.slots, rows.positions,
        qkv.stride(0), *pool.stride()[:3], rows.table.shape[1],
        heads, page_size, size, triton.next_power_of_2(size // 2), row_scale is not None,
        num_warps=1,
    )  # fmt: skip
    return query
