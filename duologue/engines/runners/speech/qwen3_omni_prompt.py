"""A conversation as Qwen3-Omni's thinker reads it: words, and what was seen and heard among them.

Words and what is heard follow one another; what stands in a picture has a row and a column, all at
one time. This module must not know how pictures become features.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import SensedSpan
from duologue.engines.runners.speech.qwen3_omni_senses import Sensed

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


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

    def inputs(self, words: Tensor) -> Tensor:
        """Return what is read.

        Shapes:
            words: [N, D], all ``ids`` read as words; those of signs are overwritten
            returns: the same
        """
        for start, sensed in self._sensed:
            words[start : start + len(sensed.features)] = sensed.features.to(words)
        return words

    def said_by(
        self, turn: int, role: int, hidden: Tensor
    ) -> tuple[tuple[int, ...], tuple[SensedSpan, ...]]:
        """Return all turns of one side: their tokens, and what was sensed among them.

        Shapes:
            hidden: [N, D], what has become of all that is read

        Args:
            turn: The token that begins one.
            role: The token behind it, where the turn is of that side.
        """
        said: list[int] = []
        spans: list[SensedSpan] = []
        sensed = deque(self._sensed)
        starts = [at for at, token in enumerate(self.ids) if token == turn]
        for start, end in pairwise([*starts, len(self.ids)]):
            theirs = self.ids[start + 1 : start + 2] == [role]
            while sensed and sensed[0][0] < end:
                at, each = sensed.popleft()
                if theirs:
                    features = hidden[at : at + len(each.features)]
                    spans.append(_span(len(said) + at - start, features, each.grid))
            if theirs:
                said += self.ids[start:end]
        return tuple(said), tuple(spans)

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


def _span(start: int, features: Tensor, grid: tuple[int, int] | None) -> SensedSpan:
    raw = features.contiguous().cpu().view(torch.uint8).numpy().tobytes()
    dtype = str(features.dtype).removeprefix("torch.")
    return SensedSpan(start, len(features), raw, dtype, grid or ())


def features_of(span: SensedSpan, device: torch.device) -> Tensor:
    """Return what is in a span, [count, D].

    Raises:
        EngineError: It is not what it says.
    """
    dtype = _DTYPES.get(span.dtype)
    if dtype is None or not span.count or len(span.features) % (span.count * dtype.itemsize):
        raise EngineError(f"{len(span.features)} bytes are no {span.count} rows of {span.dtype}")
    raw = torch.frombuffer(bytearray(span.features), dtype=dtype)
    return raw.view(span.count, -1).to(device)
