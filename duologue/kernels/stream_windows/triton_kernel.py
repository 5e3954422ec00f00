"""The windows on a GPU: activation, past and windows in one pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


@triton.jit
def _stream_windows(
    x_ptr, past_ptr, slots_ptr, first_ptr, out_ptr, x_stride,
    CHANNELS: tl.constexpr, KERNEL: tl.constexpr, STRIDE: tl.constexpr, STEPS: tl.constexpr,
    BLOCK: tl.constexpr, ACTIVATED: tl.constexpr, REPEATS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = places < STEPS * KERNEL * CHANNELS
    channel = places % CHANNELS
    tap = places // CHANNELS % KERNEL
    window = places // (CHANNELS * KERNEL)
    time = window * STRIDE + tap - (KERNEL - STRIDE)
    is_now = time >= 0
    x = tl.load(
        x_ptr + row * x_stride + time * CHANNELS + channel, mask=inside & is_now, other=0.0
    ).to(tl.float32)
    slot = tl.load(slots_ptr + row)
    before = past_ptr + slot * ((KERNEL - STRIDE) * CHANNELS)
    before += (time + (KERNEL - STRIDE)) * CHANNELS + channel
    past = tl.load(before, mask=inside & (time < 0), other=0.0).to(tl.float32)
    if REPEATS:
        begin = tl.load(x_ptr + row * x_stride + channel, mask=inside, other=0.0).to(tl.float32)
        repeated = tl.load(first_ptr + row).to(tl.int32)
        if ACTIVATED:
            begin = tl.where(begin > 0, begin, tl.exp(begin) - 1.0)
        past = tl.where(repeated != 0, begin, past)
    if ACTIVATED:
        x = tl.where(x > 0, x, tl.exp(x) - 1.0)
    y = tl.where(is_now, x, past).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * (STEPS * KERNEL * CHANNELS) + places, y, mask=inside)


def stream_windows(
    x: Tensor,
    past: Tensor,
    slots: Tensor,
    kernel: int,
    stride: int,
    activated: bool,
    first: Tensor | None,
) -> Tensor:
    """See the package."""
    rows, length, channels = x.shape
    steps = length // stride
    out = torch.empty((rows, steps, kernel * channels), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(steps * kernel * channels, _BLOCK))
    _stream_windows[grid](
        x, past, slots, slots if first is None else first, out, x.stride(0),
        channels, kernel, stride, steps, _BLOCK, activated, first is not None,
        num_warps=4,
    )  # fmt: skip
    return out
