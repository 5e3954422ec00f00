"""Attention of single positions over what their slots keep in pages.

Only what a row sees is read. A row's keys and values may be split among programs, whose shares are
joined by their largest scores and sums.

Source:
    Dao et al., "Flash-decoding for long-context inference" (2023).
"""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation
from duologue.kernels.pages import Rows


def paged_attention(query: Tensor, pool: Tensor, rows: Rows, longest: int | None = None) -> Tensor:
    """Attend.

    Shapes:
        query: [R, H * D]
        pool: [pages, 2, H, page_size, D] of one layer; of query's type, or float8_e4m3fn
        returns: [R, H * D], of query's type; zeros for masked rows

    Args:
        longest: How many positions a row sees at most, where that is few.
    """
    result: Tensor = implementation(__name__, query).paged_attention(query, pool, rows, longest)
    return result
