"""Rows in 8-bit floating point, each with a scale of its own.

A product of such rows with a matrix is left unscaled: whoever reads it next multiplies by the
scale of the row in passing, so that a matrix product with one scale for all rows, which is the
fast one, serves rows of any size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
LARGEST = 448.0
"""The largest number of that type."""


class ScaledRows(NamedTuple):
    """Values to be multiplied by the scale of their row.

    Shapes:
        values: [R, N] float8_e4m3fn
        scale: [R] float32
    """

    values: Tensor
    scale: Tensor


def scale_rows(x: Tensor) -> ScaledRows:
    """Fit each row of float32 into the range of the type.

    Shapes:
        x: [R, N] float32
    """
    scale = x.abs().amax(dim=1).clamp(min=1e-12) / LARGEST
    return ScaledRows((x / scale[:, None]).to(FP8), scale)


def product(rows: ScaledRows, weight: Tensor, weight_scale: Tensor) -> Tensor:
    """Multiply, leaving the rows' scales to the reader of the result.

    Shapes:
        weight: [M, N] float8_e4m3fn
        weight_scale: [] float32
        returns: [R, M] bfloat16
    """
    if not rows.values.is_cuda:
        exact = rows.values.float() @ weight.float().t()
        return (exact * weight_scale).to(torch.bfloat16)
    one = torch.ones((), device=rows.values.device)
    result: Tensor = torch._scaled_mm(
        rows.values,
        weight.t(),
        scale_a=one,
        scale_b=weight_scale,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )
    return result
