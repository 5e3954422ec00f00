"""An engine that computes nothing and takes as long as one does, on a clock that a test reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from duologue.engines.runners.streaming_lm.engine import EngineLimits
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import PageLimits, Shortened
from duologue.engines.runners.streaming_lm.prepared import Costs, Samples
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame

FRAME_SAMPLES = 1920


class ClockedEngine:
    """What the loop needs of a ``FrameEngine``.

    Args:
        costs: Seconds that steps and prefills take, at any position.
        slots: How many streams there may be.
    """

    def __init__(self, costs: Costs, slots: int) -> None:
        self.now = 0.0
        self.steps: list[tuple[float, tuple[int, ...]]] = []
        """When each step began, and whose it was."""
        self.prefills: list[tuple[float, int]] = []
        """When each prefill began, and how large it was."""
        self.shortened: list[Shortened] = []
        chunks = tuple(sorted(costs.prefills))
        pages = PageLimits(1, page_frames=32, window=costs.window)
        self.limits = EngineLimits(slots, pages, (slots,), chunks)
        self._costs = costs
        self._free = list(range(slots))
        self._left: deque[list[int]] = deque()  # slot, positions still to be read
        self._frames: dict[int, int] = {}

    @property
    def waiting(self) -> int:
        return sum(left for _, left in self._left)

    @property
    def waiting_position(self) -> int:
        return max((left for _, left in self._left), default=0)

    def clock(self) -> float:
        return self.now

    def open(self, opening: Opening, log: object = None) -> int:
        slot = self._free.pop()
        self._frames[slot] = 0
        self._left.append([slot, opening.positions])
        return slot

    def prefill(self, most: int) -> list[int]:
        count = next((n for n in self.limits.chunks if n >= min(self.waiting, most)), most)
        self.prefills.append((self.now, count))
        self.now += self._costs.prefills[count][0]
        live, room = [], count
        while self._left and room:
            taken = min(room, self._left[0][1])
            room -= taken
            self._left[0][1] -= taken
            if not self._left[0][1]:
                live.append(self._left.popleft()[0])
        return live

    def is_live(self, slot: int) -> bool:
        return slot in self._frames and all(slot != each for each, _ in self._left)

    def close(self, slot: int) -> None:
        del self._frames[slot]
        self._left = deque(each for each in self._left if each[0] != slot)
        self._free.append(slot)

    def step(self, slots: Sequence[int], pcm: Sequence[Samples]) -> list[SpokenFrame]:
        assert all(self.is_live(slot) for slot in slots)
        self.steps.append((self.now, tuple(slots)))
        self.now += self._costs.of_frame(len(slots))
        silence = np.zeros(FRAME_SAMPLES, np.float32)
        spoken = [SpokenFrame(slot, self._frames[slot], silence, 3, (), ()) for slot in slots]
        for slot in slots:
            self._frames[slot] += 1
        return spoken
