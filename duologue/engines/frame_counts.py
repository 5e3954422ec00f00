"""What happened to the frames of streams that are stepped at a beat of their own.

Who counts owns them, and hands on copies of their own. This module must not know who counts.
"""

from __future__ import annotations

from copy import copy

import msgspec


class FrameCounts(msgspec.Struct, kw_only=True, array_like=True, gc=False):
    """So many of each, of one stream or of all of a worker.

    Args:
        frames: Made; ``silent_frames``: those that held none of the person's audio.
        silence_samples: Put in because audio was missing at a tick.
        dropped_samples: Came too late to be heard, or while nobody listened.
        squeezed_samples: Taken beyond a frame, and ``stretched_samples`` short of it, to follow a
            clock that wanders.
        debt_frames: Waited longer for their tick than was planned, because of their client.
        late_frames: Ready more than 80 ms after the arrival of their last sample;
            ``late_in_debt``: those of them that were in debt, so that the model is not to blame.
        skipped_ticks: Left out because the model was behind; ``skipped_samples``: their audio.
        moves: To another group of streams, whose ticks follow the client's messages sooner.
        shortened_windows: Times that a stream lost what it remembered longest, for want of memory.
    """

    frames: int = 0
    silent_frames: int = 0
    silence_samples: int = 0
    dropped_samples: int = 0
    squeezed_samples: int = 0
    stretched_samples: int = 0
    debt_frames: int = 0
    late_frames: int = 0
    late_in_debt: int = 0
    skipped_ticks: int = 0
    skipped_samples: int = 0
    moves: int = 0
    shortened_windows: int = 0

    def add(self, other: FrameCounts) -> None:
        """Add what another one counted."""
        for name in FRAME_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def now(self) -> FrameCounts:
        """Return what has been counted so far; it stays as it is."""
        return copy(self)

    def since(self, before: FrameCounts) -> FrameCounts:
        """Return what was counted after ``before``."""
        return FrameCounts(
            **{name: getattr(self, name) - getattr(before, name) for name in FRAME_COUNTS}
        )


FRAME_COUNTS = tuple(field.name for field in msgspec.structs.fields(FrameCounts))
NO_FRAMES = FrameCounts()
