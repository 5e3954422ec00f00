"""Whether a connection is still alive: nobody tells who has fallen into a black hole.

Where nothing comes, the server is asked for a sign of life in time; where nothing comes all the
same, the connection is dead. This module must not know connections or clocks.
"""

from __future__ import annotations

from enum import Enum

ASK_SHARE = 3
"""The part of the limit after which a sign of life is asked for: two of them fit into it."""

OVERSLEPT_SHARE = 4
"""A look that comes later than the limit's part after the one before was not taken in time: the
program, or the whole machine, was busy or asleep, and cannot tell what has come meanwhile."""


class Verdict(Enum):
    """What a look at the connection has shown."""

    FINE = "fine"
    ASK = "ask"
    DEAD = "dead"


class LineWatch:
    """Watches one connection.

    Args:
        silence_s: After which it is dead.
    """

    def __init__(self, silence_s: float, now: float) -> None:
        self.look_every_s = silence_s / (2 * OVERSLEPT_SHARE)
        """How often ``look`` is to be called."""

        self._silence_s = silence_s
        self._heard_at = now
        self._asked_at = now
        self._looked_at = now

    def heard(self, now: float) -> None:
        """Something has come."""
        self._heard_at = now

    def look(self, now: float) -> Verdict:
        """Judge the connection."""
        overslept = now - self._looked_at > self._silence_s / OVERSLEPT_SHARE
        self._looked_at = now
        if overslept:
            # What was sent meanwhile may lie unread: it gets the time to be read.
            self._heard_at = max(self._heard_at, now - self._silence_s / 2)
        silent_s = now - self._heard_at
        if silent_s >= self._silence_s:
            return Verdict.DEAD
        if silent_s < self._silence_s / ASK_SHARE:
            return Verdict.FINE
        if now - self._asked_at < self._silence_s / ASK_SHARE:
            return Verdict.FINE
        self._asked_at = now
        return Verdict.ASK
