"""The sum and the norm on a GPU: one program a row, which stays in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from duologue.kernels.add_rms_norm import EPSILON
from duologue.kernels.scaled import FP8, LARGEST, ScaledRows


@triton.jit
def _norm_row(x, weight_ptr, columns, inside, SIZE: tl.constexpr, EPSILON: tl.constexpr):
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    return x * (weight * (1.0 / tl.sqrt(tl.sum(x * x) / SIZE + EPSILON)))


@triton.jit
def _add_rms_norm(
    x_ptr, delta_ptr, delta_scale_ptr, weight_ptr, out_ptr, out_scale_ptr,
    x_stride, delta_stride,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, EPSILON: tl.constexpr, LARGEST: tl.constexpr,
    ADDS: tl.constexpr, DELTA_IS_SCALED: tl.constexpr, OUT_IS_SCALED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < SIZE
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        delta = tl.load(delta_ptr + row * delta_stride + columns, mask=inside, other=0.0)
        delta = delta.to(tl.float32)
        if DELTA_IS_SCALED:
            delta = delta * tl.load(delta_scale_ptr + row)
        rounded = (x + delta).to(x_ptr.dtype.element_ty)
        tl.store(x_ptr + row * x_stride + columns, rounded, mask=inside)
        x = rounded.to(tl.float32)
    y = _norm_row(x, weight_ptr, columns, inside, SIZE, EPSILON)
    if OUT_IS_SCALED:
        scale = tl.maximum(tl.max(tl.abs(y)), 1e-12) / LARGEST
        tl.store(out_scale_ptr + row, scale)
        y = y / scale
    tl.store(out_ptr + row * SIZE + columns, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _embed_rms_norm(
    x_ptr, table_ptr, ids_ptr, weight_ptr, sum_ptr, out_ptr, x_stride, ids_stride,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, EPSILON: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < SIZE
    entry = tl.load(ids_ptr + row * ids_stride).to(tl.int64)
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(table_ptr + entry * SIZE + columns, mask=inside, other=0.0).to(tl.float32)
    rounded = x.to(sum_ptr.dtype.element_ty)
    tl.store(sum_ptr + row * SIZE + columns, rounded, mask=inside)
    y = _norm_row(rounded.to(tl.float32), weight_ptr, columns, inside, SIZE, EPSILON)
    tl.store(out_ptr + row * SIZE + columns, y.to(out_ptr.dtype.element_ty), mask=inside)


def add_rms_norm(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None
) -> Tensor:
    """See the package."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _launch(x, delta, weight, delta_scale, out, None)
    return out


def add_rms_norm_scaled(
    x: Tensor, delta: Tensor | None, weight: Tensor, delta_scale: Tensor | None
) -> ScaledRows:
    """See the package."""
    out = torch.empty(x.shape, dtype=FP8, device=x.device)
    scale = torch.empty(len(x), dtype=torch.float32, device=x.device)
    _launch(x, delta, weight, delta_scale, out, scale)
    return ScaledRows(out, scale)


def embed_rms_norm(x: Tensor, table: Tensor, ids: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """See the package."""
    rows, size = x.shape
    total = torch.empty((rows, size), dtype=x.dtype, device=x.device)
    out = torch.empty_like(total)
    _embed_rms_norm[(rows,)](
        x, table, ids, weight, total, out, x.stride(0), ids.stride(0),
        size, triton.next_power_of_2(size), EPSILON, num_warps=_warps(size),
    )  # fmt: skip
    return total, out


def _launch(
    x: Tensor,
    delta: Tensor | None,
    weight: Tensor,
    delta_scale: Tensor | None,
    out: Tensor,
    scale: Tensor | None,
) -> None:
    rows, size = x.shape
    _add_rms_norm[(rows,)](
        x, x if delta is None else delta, x if delta_scale is None else delta_scale,
        weight, out, out if scale is None else scale,
        x.stride(0), 0 if delta is None else delta.stride(0),
        size, triton.next_power_of_2(size), EPSILON, LARGEST,
        delta is not None, delta_scale is not None, scale is not None,
        num_warps=_warps(size),
    )  # fmt: skip


def _warps(size: int) -> int:
    return 8 if size > 2048 else 4
