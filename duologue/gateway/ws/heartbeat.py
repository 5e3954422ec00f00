"""Signs of life: when a silent peer is asked for one, and when it is given up.

This module must not know the time, nor how a peer is asked.
"""

from __future__ import annotations

from enum import Enum

STOOD_STILL_S = 0.25
"""A look that comes so late means that this process stood still itself: the answer may have come
meanwhile and lie unread, so the peer is asked once more."""


class Beat(Enum):
    """What is due."""

    NOTHING = "nothing"
    PING = "ping"
    GIVE_UP = "give_up"


class Heartbeat:
    """Watches one peer.

    Args:
        interval_s: A peer that was silent for so long is asked; after half as long again without
            a byte it is given up.
    """

    __slots__ = ("_asked_at", "_interval_s", "_patience_s", "heard_at")

    def __init__(self, interval_s: float, now: float) -> None:
        self.heard_at = now
        """When the last byte came; whoever reads bytes sets it, once for each piece."""

        self._interval_s = interval_s
        self._patience_s = interval_s / 2
        self._asked_at: float | None = None

    def next_deadline(self) -> float:
        """When ``on_timer`` is due."""
        if self._asked_at is not None and self._asked_at >= self.heard_at:
            return self._asked_at + self._patience_s
        return self.heard_at + self._interval_s

    def on_timer(self, now: float) -> Beat:
        """Tell what is due now; may be called early."""
        deadline = self.next_deadline()
        if now < deadline:
            return Beat.NOTHING
        stood_still = now > deadline + STOOD_STILL_S
        if not stood_still and self._asked_at is not None and self._asked_at >= self.heard_at:
            return Beat.GIVE_UP
        self._asked_at = now
        return Beat.PING
