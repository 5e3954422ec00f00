"""Pages for the tests: slots with a past, in pages of any order among not-a-numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from duologue.kernels.pages import Rows
from tests.kernels.judge import DEVICE, noise

WIDTH = 4


@dataclass
class Cache:
    """A pool of pages, and what the rows of a step see in it.

    Shapes:
        keys, values: for each row [n, H, D] float64, in the order of positions
    """

    pool: Tensor
    rows: Rows
    keys: list[Tensor]
    values: list[Tensor]


def fill(
    spans: list[tuple[int, int] | None],
    heads: int,
    size: int,
    page_size: int,
    dtype: torch.dtype,
) -> Cache:
    """Fill pages so that each row sees the positions from its first to its last one.

    Args:
        spans: (first, position) of each row; None: it is masked.
    """
    count = len(spans) * WIDTH + 1
    pool = torch.full(
        (count, 2, heads, page_size, size), float("nan"), dtype=torch.float32, device=DEVICE
    ).to(dtype)
    order = torch.randperm(count - 1) + 1
    table = order.view(len(spans), WIDTH).to(torch.int32)
    keys, values = [], []
    for slot, span in enumerate(spans):
        for kept, side in ((keys, 0), (values, 1)):
            count = 0 if span is None else span[1] + 1 - span[0]
            kept.append(noise(count, heads, size).to(dtype))
            for offset in range(count):
                position = span[0] + offset if span else 0
                page = table[slot, position // page_size % WIDTH]
                pool[page, side, :, position % page_size] = kept[-1][offset]
    rows = Rows(
        table.to(DEVICE),
        torch.arange(len(spans), dtype=torch.int32, device=DEVICE),
        torch.tensor([span[0] if span else 0 for span in spans], dtype=torch.int32, device=DEVICE),
        torch.tensor([span[1] if span else -1 for span in spans], dtype=torch.int32, device=DEVICE),
    )
    return Cache(pool, rows, keys, values)
