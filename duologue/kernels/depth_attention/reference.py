"""Attention over a frame's steps in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor


def depth_attention(qkv: Tensor, kept: Tensor, step: int) -> Tensor:
    """See the package."""
    rows, _, heads, _, size = kept.shape
    query, key, value = qkv.view(rows, 3, heads, size).unbind(1)
    kept[:, 0, :, step] = key
    kept[:, 1, :, step] = value
    keys, values = kept[:, :, :, : step + 1].float().unbind(1)  # [R, H, step + 1, D]
    scores = (keys @ query.float()[..., None])[..., 0] * size**-0.5
    attended = (torch.softmax(scores, dim=2)[:, :, None] @ values)[:, :, 0]
    return attended.flatten(1).to(qkv.dtype)
