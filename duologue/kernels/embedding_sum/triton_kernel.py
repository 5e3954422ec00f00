"""The sum of embeddings on a GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


@triton.jit
def _embedding_sum(
    tokens_ptr, table_ptr, begins_ptr, out_ptr, tokens_stride,
    COUNT: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < SIZE
    total = tl.zeros((BLOCK,), tl.float32)
    for stream in tl.static_range(COUNT):
        token = tl.load(tokens_ptr + row * tokens_stride + stream)
        entry = (tl.maximum(token, 0) + tl.load(begins_ptr + stream)).to(tl.int64)
        mask = columns < tl.where(token >= 0, SIZE, 0)
        total += tl.load(table_ptr + entry * SIZE + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * SIZE + columns, total.to(out_ptr.dtype.element_ty), mask=inside)


def embedding_sum(tokens: Tensor, table: Tensor, begins: Tensor) -> Tensor:
    """See the package."""
    rows, count = tokens.shape
    size = table.shape[1]
    out = torch.empty((rows, size), dtype=table.dtype, device=table.device)
    grid = (rows, triton.cdiv(size, _BLOCK))
    _embedding_sum[grid](
        tokens, table, begins, out, tokens.stride(0), count, size, _BLOCK, num_warps=4
    )
    return out
