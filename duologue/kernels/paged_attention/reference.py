"""Attention over pages in plain torch.

The work is the same whatever a row sees, so that its result does not depend on its neighbours. It
costs as if every row saw all that a table can hold.
"""

from __future__ import annotations

import torch
from torch import Tensor

from duologue.kernels.pages import Rows

_MOST_NUMBERS = 1 << 24
"""Of keys and values that are copied at a time."""


def paged_attention(query: Tensor, pool: Tensor, rows: Rows, longest: int | None = None) -> Tensor:
    """See the package."""
    most = max(1, _MOST_NUMBERS // (rows.table.shape[1] * pool[0].numel()))
    parts = []
    for begin in range(0, len(query), most):
        part = slice(begin, begin + most)
        some = Rows(rows.table, rows.slots[part], rows.first[part], rows.positions[part])
        parts.append(_attend(query[part], pool, some))
    return torch.cat(parts)


def _attend(query: Tensor, pool: Tensor, rows: Rows) -> Tensor:
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
    places = rows.table.shape[1] * page_size
    newest = rows.positions.long()[:, None]
    age = torch.remainder(newest - torch.arange(places, device=newest.device), places)
    positions = newest - age
    return torch.where(positions < 0, torch.iinfo(torch.int64).max, positions)
