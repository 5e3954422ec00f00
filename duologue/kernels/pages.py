"""Where the keys and values of a step's rows lie.

All layers share one table. A page holds the keys and values of a fixed number of neighbouring
positions, at all heads; the page of position ``p`` stands in the table of its slot at
``p // page_size % width``. So a window slides without a table being moved: a new page takes the
entry of one that has left the window. Page 0 belongs to nobody: masked rows may write there.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

SINK_PAGE = 0


class Rows(NamedTuple):
    """What tells a step's rows apart. Several may be positions of one slot.

    Shapes:
        table: [S, W] int32, page numbers
        slots: [R] int32
        first: [R] int32, the oldest position that a row sees
        positions: [R] int32, its own, which is the newest; -1: the row is masked
    """

    table: Tensor
    slots: Tensor
    first: Tensor
    positions: Tensor
