"""What was drawn from at the end of beginnings that are kept: who begins so need not read at all.

Their keys and values are in shared pages (``pages.py``), which say for how long one is kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from duologue.engines.models.moshi_lm.token_grid import Frame
from duologue.engines.runners.streaming_lm.frame_step import FrameStep
from duologue.engines.runners.streaming_lm.pages import Pages
from duologue.engines.runners.streaming_lm.prepared import PreparedBeginning


class KeptBeginnings:
    """The last hidden state of each beginning that is kept, and of each stream that begins so.

    Args:
        count: How many beginnings ``pages`` keeps at most.
        pool: Of graphs.
    """

    def __init__(self, step: FrameStep, pages: Pages, count: int, pool: object) -> None:
        shape = (step.slots + count, step.network.config.dimension)
        like = step.network.weights.embeddings
        # Those of the streams are copies: a beginning may be dropped before they come to begin.
        self._hidden = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self._job = PreparedBeginning(step, self._hidden, pool)
        self._pages = pages
        self._free = list(range(step.slots, step.slots + count))
        self._rows: dict[str, int] = {}

    def keep(self, name: str, slot: int, hidden: Tensor) -> None:
        """Keep what a stream has read so far, and what it draws from now.

        Shapes:
            hidden: [D], of its last position
        """
        self._pages.keep(slot, name)
        for gone in [each for each in self._rows if not self._pages.knows(each)]:
            self._free.append(self._rows.pop(gone))
        if self._pages.knows(name) and name not in self._rows:
            row = self._rows[name] = self._free.pop()
            self._hidden[row].copy_(hidden)

    def take(self, name: str, slot: int) -> bool:
        """Let a stream that has all pages of a beginning have what it draws from, if it is there.

        Then ``begin`` is all that it needs.
        """
        row = self._rows.get(name)
        if row is not None:
            self._hidden[slot].copy_(self._hidden[row])
        return row is not None

    def begin(self, slot: int, last: Frame) -> None:
        """Let it begin.

        Args:
            last: The frame that its beginning ends with.
        """
        self._job.run(self._hidden, slot, slot, self._pages.end(slot) - 1, last)
