"""A conversation as Qwen3-Omni's thinker reads it: words, and what was seen and heard among them.

Words and what is heard follow one another; what stands in a picture has a row and a column, all at
one time. This module must not know how pictures become features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.runners.speech.qwen3_omni_senses import Sensed


@dataclass(slots=True)
class OmniPrompt:
    """What is read before an answer.

    Args:
        ids: Tokens; where something was sensed, its sign as often as it has features.
        next_place: Where the next word stands.
    """

    ids: list[int] = field(default_factory=list)
    next_place: int = 0
    _places: list[Tensor] = field(default_factory=list)
    _sensed: list[tuple[int, Sensed]] = field(default_factory=list)

    def words(self, ids: Sequence[int]) -> None:
        """Add words."""
        self.ids += ids
        self._follow(len(ids))

    def sensed(self, sensed: Sensed, sign: int) -> None:
        """Add what was seen or heard.

        Args:
            sign: The token that stands for it.
        """
        count = len(sensed.features)
        self._sensed.append((len(self.ids), sensed))
        self.ids += [sign] * count
        if sensed.grid is None:
            self._follow(count)
            return
        rows, columns = sensed.grid
        row = torch.arange(rows).repeat_interleave(columns)
        column = torch.arange(columns).repeat(rows)
        self._places.append(torch.stack((torch.zeros_like(row), row, column)) + self.next_place)
        self.next_place += max(rows, columns)

    @property
    def shift(self) -> int:
        """How much later in order the next word comes than it stands."""
        return self.next_place - len(self.ids)

    def inputs(self, table: Tensor) -> Tensor:
        """Return what is read, [N, D].

        Shapes:
            table: [words, D], the embeddings of words
        """
        read = F.embedding(torch.tensor(self.ids, device=table.device), table)
        for start, sensed in self._sensed:
            read[start : start + len(sensed.features)] = sensed.features.to(read)
        return read

    def stands(self, device: torch.device) -> Tensor | None:
        """Return time, row and column of each input, [3, N]; ``None``: they follow one another."""
        if not self.shift and all(sensed.grid is None for _, sensed in self._sensed):
            return None
        return torch.cat(self._places, dim=1).to(device)

    def added(self, like: Tensor) -> Sequence[Tensor]:
        """Return what is added to what comes of the first layers.

        Shapes:
            like: [N, D]
            returns: [N, D] each
        """
        deepest = max((len(sensed.deep) for _, sensed in self._sensed), default=0)
        layers = [torch.zeros_like(like) for _ in range(deepest)]
        for start, sensed in self._sensed:
            for layer, features in enumerate(sensed.deep):
                layers[layer][start : start + len(features)] = features.to(like)
        return layers

    def _follow(self, count: int) -> None:
        places = torch.arange(count) + self.next_place
        self._places.append(places.expand(3, -1))
        self.next_place += count
