"""What a plugin tells of a request that is stepped at a beat: an effect of the contract."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.engines.frame_counts import FrameCounts


@dataclass(frozen=True, slots=True)
class StreamNoted:
    """What became of the frames of a standing request so far, for who looks at the session.

    Args:
        remembers_ms: How far back the model remembers, where that has become less than it should
            be; clients that asked are told. ``None``: as before.
    """

    counts: FrameCounts
    remembers_ms: int | None = None
