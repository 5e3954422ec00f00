"""The codes of a frame after its first: a short transformer run anew for each frame.

All rows are at the same place of their frames, and a frame is a few dozen places at most, so keys
and values need a short ring that is written over again and again, and no prefill.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.code_talker.sampling import Draw, Taste
from duologue.engines.models.decoder.stack import DecoderStack


class CodePredictor:
    """Draws codes 1 to K - 1.

    Args:
        stack: Of at least K positions, and as many slots as there are rows.
        tables: What code k is embedded by, for k from 0 to K - 2; [V, D] each.
        heads: What code k + 1 is drawn from; [V, d] each.
        projection: From the size of the large transformer to that of this one, [d, D] and perhaps
            a bias [d]; ``None`` where they are the same.
    """

    def __init__(
        self,
        stack: DecoderStack,
        tables: Sequence[Tensor],
        heads: Sequence[Tensor],
        projection: tuple[Tensor, Tensor | None] | None = None,
    ) -> None:
        self._stack = stack
        self._tables = tables
        self._heads = heads
        self._projection = projection

    def draw(self, hidden: Tensor, first: Tensor, draw: Draw, taste: Taste) -> Tensor:
        """Draw the other codes of a frame.

        Shapes:
            hidden: [R, D], what the first code was drawn from
            first: [R] int64
            returns: [R, K] int64, the first included
        """
        rows = range(len(first))
        codes = [first]
        given = torch.stack((hidden, F.embedding(first, self._tables[0])), dim=1)  # [R, 2, D]
        position = 0
        for place, head in enumerate(self._heads, 1):
            made = self._stack.step(self._projected(given), rows, [position] * len(rows))
            position += given.shape[1]
            codes.append(draw.take(F.linear(made[:, -1], head), taste, place))
            if place < len(self._tables):
                given = F.embedding(codes[-1], self._tables[place])[:, None]
        return torch.stack(codes, dim=1)

    def _projected(self, x: Tensor) -> Tensor:
        return x if self._projection is None else F.linear(x, *self._projection)
