"""Queries, keys and values of new positions: turned by position, and kept in pages.

Source:
    Su et al., "RoFormer" (2021), on neighbouring channels; paged keys and values by Kwon et al.,
    "Efficient memory management for large language model serving with PagedAttention" (2023).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from duologue.kernels import implementation
from duologue.kernels.pages import Rows


def rope_angles(positions: Tensor, head_size: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Compute once for all layers what a step's rows are turned by.

    Shapes:
        positions: [R] int32
        returns: cosines and sines, [R, head_size / 2] float32 each
    """
    half = head_size // 2
    exponents = torch.arange(half, device=positions.device, dtype=torch.float32)
    frequencies = torch.exp(exponents * (-math.log(base) / half))
    angles = positions[:, None].float() * frequencies
    return angles.cos(), angles.sin()


def rope_kv_write(
    qkv: Tensor,
    angles: tuple[Tensor, Tensor],
    pool: Tensor,
    rows: Rows,
    row_scale: Tensor | None = None,
) -> Tensor:
    """Write turned keys, and values, to their pages, and return turned queries.

    Nothing is kept of a masked row, except in page 0.

    Shapes:
        qkv: [R, 3 * H * D]
        angles: of ``rope_angles``
        pool: [pages, 2, H, page_size, D] of one layer; of qkv's type, or float8_e4m3fn
        row_scale: [R] float32, what rows of ``qkv`` are multiplied by first
        returns: [R, H * D], of qkv's type
    """
    result: Tensor = implementation(__name__, qkv).rope_kv_write(qkv, angles, pool, rows, row_scale)
    return result
