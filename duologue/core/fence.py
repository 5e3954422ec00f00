"""Fencing tokens: how late output of an interrupted response is told from current output.

An interruption advances the epoch of one lane, and the end of a response closes its lane. What
carries an older epoch, or belongs to no open lane, is dropped and counted. This module must not
know what a lane is used for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

Lane = NewType("Lane", str)
"""Either the input lane of a session or one response (its id)."""

INPUT_LANE = Lane("input")


@dataclass(frozen=True, slots=True)
class Fence:
    """What every stage request and stage output carries."""

    session: str
    lane: Lane
    epoch: int


class Epochs:
    """The current epoch of each open lane of one session.

    A lane that was closed, or never opened, has no current epoch: everything of it is stale.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._current: dict[Lane, Fence] = {}

    def open(self, lane: Lane) -> Fence:
        """Start a lane at epoch 0; opening an open lane returns its current fence."""
        return self._current.setdefault(lane, Fence(self._session, lane, 0))

    def advance(self, lane: Lane) -> Fence:
        """Make all that the lane has out there stale, and return the new fence."""
        fence = self._current[lane]
        self._current[lane] = fence = Fence(self._session, lane, fence.epoch + 1)
        return fence

    def close(self, lane: Lane) -> None:
        """End a lane; late output of it is stale from now on."""
        self._current.pop(lane, None)

    def is_open(self, lane: Lane) -> bool:
        """Tell whether a lane has a current epoch."""
        return lane in self._current

    def fence(self, lane: Lane) -> Fence:
        """Return the current fence of an open lane."""
        return self._current[lane]

    def is_current(self, fence: Fence) -> bool:
        """Tell whether output under this fence may still go anywhere."""
        return self._current.get(fence.lane) == fence
