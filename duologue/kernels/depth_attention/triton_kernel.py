"""Attention over a frame's steps on a GPU: one program for each row and head."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _depth_attention(
    qkv_ptr, kept_ptr, out_ptr, qkv_stride, scale, step,
    HEADS: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr,
    STEPS: tl.constexpr, PADDED_STEPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    channels = tl.arange(0, PADDED)
    inside = channels < SIZE
    steps = tl.arange(0, PADDED_STEPS)
    mine = qkv_ptr + row * qkv_stride + head * SIZE + channels
    query = tl.load(mine, mask=inside, other=0.0).to(tl.float32)
    key = tl.load(mine + HEADS * SIZE, mask=inside, other=0.0)
    value = tl.load(mine + 2 * HEADS * SIZE, mask=inside, other=0.0)
    keys_ptr = kept_ptr + (row * 2 * HEADS + head) * STEPS * SIZE
    values_ptr = keys_ptr + HEADS * STEPS * SIZE
    tl.store(keys_ptr + step * SIZE + channels, key, mask=inside)
    tl.store(values_ptr + step * SIZE + channels, value, mask=inside)
    place = steps[:, None] * SIZE + channels[None, :]
    before = (steps < step)[:, None] & inside[None, :]
    now = (steps == step)[:, None]
    keys = tl.load(keys_ptr + place, mask=before, other=0.0).to(tl.float32)
    values = tl.load(values_ptr + place, mask=before, other=0.0).to(tl.float32)
    keys = tl.where(now, key.to(tl.float32)[None, :], keys)
    values = tl.where(now, value.to(tl.float32)[None, :], values)
    scores = tl.where(steps <= step, tl.sum(keys * query[None, :], 1) * scale, -1e30)
    weights = tl.exp(scores - tl.max(scores, 0))
    attended = tl.sum((weights / tl.sum(weights, 0))[:, None] * values, 0)
    out = out_ptr + (row * HEADS + head) * SIZE + channels
    tl.store(out, attended.to(out_ptr.dtype.element_ty), mask=inside)


def depth_attention(qkv: Tensor, kept: Tensor, step: int) -> Tensor:
    """See the package."""
    rows, _, heads, steps, size = kept.shape
    out = torch.empty((rows, heads * size), dtype=qkv.dtype, device=qkv.device)
    _depth_attention[(rows, heads)](
        qkv, kept, out, qkv.stride(0), size**-0.5, step,
        heads, size, triton.next_power_of_2(size), steps, triton.next_power_of_2(steps),
        num_warps=1,
    )  # fmt: skip
    return out
