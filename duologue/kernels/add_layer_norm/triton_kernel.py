"""The sum and the norm on a GPU: one program a row, which stays in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from duologue.kernels.add_layer_norm import EPSILON


@triton.jit
def _add_layer_norm(
    x_ptr, delta_ptr, scale_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, delta_stride,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, EPSILON: tl.constexpr,
    ADDS: tl.constexpr, SCALES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < SIZE
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        delta = tl.load(delta_ptr + row * delta_stride + columns, mask=inside, other=0.0)
        delta = delta.to(tl.float32)
        if SCALES:
            delta = delta * tl.load(scale_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        rounded = (x + delta).to(x_ptr.dtype.element_ty)
        tl.store(x_ptr + row * x_stride + columns, rounded, mask=inside)
        x = rounded.to(tl.float32)
    mean = tl.sum(x) / SIZE
    centred = tl.where(inside, x - mean, 0.0)
    spread = 1.0 / tl.sqrt(tl.sum(centred * centred) / SIZE + EPSILON)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    y = centred * spread * weight + bias
    tl.store(out_ptr + row * SIZE + columns, y.to(out_ptr.dtype.element_ty), mask=inside)


def add_layer_norm(
    x: Tensor, delta: Tensor | None, scale: Tensor | None, weight: Tensor, bias: Tensor
) -> Tensor:
    """See the package."""
    rows, size = x.shape
    out = torch.empty((rows, size), dtype=x.dtype, device=x.device)
    _add_layer_norm[(rows,)](
        x, x if delta is None else delta, x if scale is None else scale, weight, bias, out,
        x.stride(0), 0 if delta is None else delta.stride(0),
        size, triton.next_power_of_2(size), EPSILON, delta is not None, scale is not None,
        num_warps=4,
    )  # fmt: skip
    return out
