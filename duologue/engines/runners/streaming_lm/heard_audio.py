"""What has come in for each slot and no frame has taken: one matrix for all of them.

How much of it a frame takes is for the scheduler to say. This module must not know time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duologue.codecs.sample_slip import fit_frame
from duologue.engines.runners.streaming_lm.ticks.frame_feed import Cut

Samples = npt.NDArray[np.float32]


class HeardAudio:
    """Samples that wait, at the beginning of each slot's row.

    Args:
        capacity: How many samples of one slot may wait. The scheduler's limits are smaller.
    """

    def __init__(self, slots: int, capacity: int, frame_samples: int) -> None:
        self._waiting = np.zeros((slots, capacity), np.float32)
        self._levels = [0] * slots
        self._frame_samples = frame_samples

    def clear(self, slot: int) -> None:
        """Forget what waits."""
        self._levels[slot] = 0

    def append(self, slot: int, samples: Samples, drop: int) -> None:
        """Add a message, and drop so many of the oldest samples, those of the message among them.

        Shapes:
            samples: [n] float32
        """
        level = self._levels[slot]
        of_old = min(drop, level)
        self.skip(slot, of_old)
        samples = samples[drop - of_old :]
        level = self._levels[slot]
        self._waiting[slot, level : level + len(samples)] = samples
        self._levels[slot] = level + len(samples)

    def skip(self, slot: int, count: int) -> None:
        """Throw the oldest samples away."""
        level = self._levels[slot] = self._levels[slot] - count
        row = self._waiting[slot]
        row[:level] = row[count : count + level]

    def take(self, cut: Cut) -> Samples:
        """Make a frame.

        Shapes:
            returns: [frame_samples] float32
        """
        slot = cut.slot
        self.skip(slot, cut.skip)
        taken = self._waiting[slot, : cut.take].copy()
        self.skip(slot, cut.take)
        if not cut.silence:
            return fit_frame(taken, self._frame_samples)
        frame = np.zeros(self._frame_samples, np.float32)
        if cut.leads:
            frame[self._frame_samples - cut.take :] = taken
        else:
            frame[: cut.take] = taken
        return frame
