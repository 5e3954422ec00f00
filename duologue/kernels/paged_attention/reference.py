"""Attention over pages in plain torch.

The work is the same whatever a row sees, so that its result does not depend on its neighbours. It
costs as if every row saw all that a table can hold.
"""

from __future__ import annotations

import torch
from torch import Tensor

from duologue.kernels.pages import Rows


def paged_attention(query: Tensor, pool: Tensor, rows: Rows) -> Tensor:
    """See the package."""
    _, _, heads, page_size, size = pool.shape
    seen = _positions(rows, page_size)  # [R, W * P]
    visible = (seen >= rows.first[:, None]) & (seen <= rows.positions[:, None])
    pages = pool[rows.table[rows.slots.long()].long()]  # [R, W, 2, H, P, D]
    key, value = pages.float().permute(2, 0, 3, 1, 4, 5).flatten(3, 4).unbind(0)  # [R, H, W*P, D]
    mask = visible[:, None, :]
    # What is not seen may hold anything, not-a-numbers as well.
    key = torch.where(mask[..., None], key, 0.0)
    value = torch.where(mask[..., None], value, 0.0)
    wide = query.float().view(-1, heads, 1, size) * size**-0.5
    scores = (wide @ key.transpose(2, 3))[:, :, 0]  # [R, H, W * P]
    scores = scores.masked_fill(~mask, float("-inf"))
    largest = scores.amax(dim=2, keepdim=True).clamp(min=torch.finfo(torch.float32).min)
    weights = torch.exp(scores - largest)
    total = weights.sum(dim=2, keepdim=True).clamp(min=1e-30)
    attended = ((weights / total)[:, :, None] @ value)[:, :, 0]
    return attended.flatten(1).to(query.dtype)


def _positions(rows: Rows, page_size: int) -> Tensor:
    """What position each place of a row's table holds: the latest that falls on it."""
    width = rows.table.shape[1]
    device = rows.table.device
    newest = rows.positions.long()[:, None] // page_size  # [R, 1]
    page = newest - torch.remainder(newest - torch.arange(width, device=device), width)
    inside = torch.arange(page_size, device=device)
    positions = (page[:, :, None] * page_size + inside).flatten(1)
    return torch.where(positions < 0, torch.iinfo(torch.int64).max, positions)
