"""The gate on a GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from duologue.kernels.scaled import FP8, LARGEST, ScaledRows

_BLOCK = 1024


@triton.jit
def _gated(row_ptr, columns, inside, scale, SIZE: tl.constexpr):
    gate = tl.load(row_ptr + columns, mask=inside, other=0.0).to(tl.float32) * scale
    up = tl.load(row_ptr + SIZE + columns, mask=inside, other=0.0).to(tl.float32) * scale
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def _swiglu(in_ptr, out_ptr, in_stride, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < SIZE
    y = _gated(in_ptr + row * in_stride, columns, inside, 1.0, SIZE)
    tl.store(out_ptr + row * SIZE + columns, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _swiglu_scaled(
    in_ptr, in_scale_ptr, out_ptr, out_scale_ptr, in_stride,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, LARGEST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < SIZE
    y = _gated(in_ptr + row * in_stride, columns, inside, tl.load(in_scale_ptr + row), SIZE)
    scale = tl.maximum(tl.max(tl.abs(y)), 1e-12) / LARGEST
    tl.store(out_scale_ptr + row, scale)
    tl.store(out_ptr + row * SIZE + columns, (y / scale).to(out_ptr.dtype.element_ty), mask=inside)


def swiglu(gate_up: Tensor) -> Tensor:
    """See the package."""
    rows, size = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((rows, size), dtype=gate_up.dtype, device=gate_up.device)
    grid = (rows, triton.cdiv(size, _BLOCK))
    _swiglu[grid](gate_up, out, gate_up.stride(0), size, _BLOCK, num_warps=4)
    return out


def swiglu_scaled(gate_up: Tensor, row_scale: Tensor) -> ScaledRows:
    """See the package."""
    rows, size = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((rows, size), dtype=FP8, device=gate_up.device)
    scale = torch.empty(rows, dtype=torch.float32, device=gate_up.device)
    block = triton.next_power_of_2(size)
    _swiglu_scaled[(rows,)](
        gate_up, row_scale, out, scale, gate_up.stride(0), size, block, LARGEST,
        num_warps=16 if block > 4096 else 4,
    )  # fmt: skip
    return ScaledRows(out, scale)
