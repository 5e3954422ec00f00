"""Drawing on a GPU: one program a row.

The score of the last token that takes part is found by halving: scores are read as integers of the
same order, so as many rounds as they have bits find it exactly.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _mix(x):
    x = x ^ (x >> 16)
    x = x * tl.full((), 0x7FEB352D, tl.uint32)
    x = x ^ (x >> 15)
    x = x * tl.full((), 0x846CA68B, tl.uint32)
    return x ^ (x >> 16)


@triton.jit(do_not_specialize=["draw"])
def _gumbel_top_k(
    logits_ptr, temperature_ptr, top_k_ptr, seeds_ptr, counters_ptr, out_ptr, stride, draw,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    tokens = tl.arange(0, BLOCK)
    inside = tokens < SIZE
    raw = tl.load(logits_ptr + row * stride + tokens, mask=inside, other=float("-inf"))
    scores = raw.to(tl.float32)
    temperature = tl.load(temperature_ptr + row)
    chosen = scores
    if temperature > 0:
        # As integers, negative numbers are in reverse order.
        bits = scores.to(tl.int32, bitcast=True)
        order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        order = order >> (32 - BITS)
        wanted = tl.minimum(tl.load(top_k_ptr + row), SIZE)
        low = tl.full((), -(2 ** (BITS - 1)), tl.int64)
        high = tl.full((), 2 ** (BITS - 1) - 1, tl.int64)
        for _ in range(BITS):
            middle = (low + high + 1) >> 1
            enough = tl.sum((inside & (order >= middle.to(tl.int32))).to(tl.int32), 0) >= wanted
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle - 1)
        seed = tl.load(seeds_ptr + row)
        state = _mix((seed & 0xFFFFFFFF).to(tl.uint32))
        state = _mix(state ^ ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32))
        state = _mix(state ^ tl.load(counters_ptr + row).to(tl.uint32))
        step = tl.full((), 0x9E3779B9, tl.uint32)
        state = _mix(state + draw.to(tl.uint32) * step)
        mixed = _mix(state ^ _mix((tokens + 1).to(tl.uint32) * step))
        uniform = ((mixed >> 9).to(tl.float32) + 0.5) * (2.0**-23)
        noise = -tl.log(-tl.log(uniform))
        kept = inside & (order >= low.to(tl.int32))
        chosen = tl.where(kept, scores / temperature + noise, float("-inf"))
    tl.store(out_ptr + row, tl.argmax(chosen, 0).to(tl.int32))


def gumbel_top_k(
    logits: Tensor, temperature: Tensor, top_k: Tensor, seeds: Tensor, counters: Tensor, draw: int
) -> Tensor:
    """See the package."""
    rows, size = logits.shape
    out = torch.empty(rows, dtype=torch.int32, device=logits.device)
    block = triton.next_power_of_2(size)
    bits = 16 if logits.dtype is torch.bfloat16 else 32
    _gumbel_top_k[(rows,)](
        logits, temperature, top_k, seeds, counters, out, logits.stride(0), draw,
        size, block, bits, num_warps=16 if block > 8192 else 8,
    )  # fmt: skip
    return out
