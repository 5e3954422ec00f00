"""When a link writes: at once while it has little to say, and in batches once it has much.

The generic cell rate algorithm: some writes may follow each other at once, as many as would have
fitted into the time before; past that there is a gap after each. Pure.

Source:
    ITU-T Recommendation I.371, annex A, the virtual scheduling algorithm.
"""

from __future__ import annotations

GAP_S = 0.002
"""Between two writes of a busy link: short beside a frame of audio, and many calls have something
to say in it."""

AT_ONCE = 8
"""Writes that need no gap. A few calls never wait: each of their frames is one write or two."""


class WritePace:
    """The pace of one link.

    Units:
        Times are seconds on any one clock.
    """

    __slots__ = ("_at_once_s", "_full_at", "_gap_s")

    def __init__(self, gap_s: float = GAP_S, at_once: int = AT_ONCE) -> None:
        self._gap_s = gap_s
        self._at_once_s = (at_once - 1) * gap_s
        self._full_at = 0.0
        """When all writes so far would be over, with a gap after each."""

    @property
    def next_at(self) -> float:
        """No write before this moment; it may be long past."""
        return self._full_at - self._at_once_s

    def wrote(self, now: float) -> None:
        """There was a write."""
        self._full_at = max(self._full_at, now) + self._gap_s
