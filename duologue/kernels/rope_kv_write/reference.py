"""Turning and keeping in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor

from duologue.kernels.pages import SINK_PAGE, Rows


def rope_kv_write(
    qkv: Tensor,
    angles: tuple[Tensor, Tensor],
    pool: Tensor,
    rows: Rows,
    row_scale: Tensor | None,
) -> Tensor:
    """See the package."""
    _, _, heads, page_size, size = pool.shape
    wide = qkv.float()
    if row_scale is not None:
        wide = wide * row_scale[:, None]
    query, key, value = wide.view(-1, 3, heads, size).unbind(1)  # [R, H, D] each
    query, key = _turn(query, angles), _turn(key, angles)
    width = rows.table.shape[1]
    position = rows.positions.long().clamp(min=0)
    page = rows.table[rows.slots.long(), position // page_size % width].long()
    page = torch.where(rows.positions < 0, SINK_PAGE, page)
    pool[page, 0, :, position % page_size] = key.to(pool.dtype)
    pool[page, 1, :, position % page_size] = value.to(pool.dtype)
    return query.flatten(1).to(qkv.dtype)


def _turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = (each[:, None] for each in angles)  # [R, 1, D / 2]
    real, imaginary = x.unflatten(2, (-1, 2)).unbind(3)
    turned = (real * cos - imaginary * sin, real * sin + imaginary * cos)
    return torch.stack(turned, dim=3).flatten(2)
