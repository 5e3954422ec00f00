"""Fencing tokens: how late output of an interrupted response is told from current output.

Each time that an answer is cut off, its session begins a new epoch, and that answer's lane goes on
in it; the end of a response closes its lane. What carries another fence than its lane has now, or
belongs to no open lane, is dropped and counted. This module must not know what a lane is used for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

Lane = NewType("Lane", str)
"""Either the lane of the session itself or one response (its id)."""

SESSION_LANE = Lane("input")
"""Of what outlives responses: listening, speculation, the stream of a lockstep model. Nothing
advances it. The value is older than the name, and is in recordings."""


@dataclass(frozen=True, slots=True)
class Fence:
    """What every stage request and stage output carries.

    Args:
        epoch: How often an answer of the session had been cut off when the lane was opened or last
            advanced.
    """

    session: str
    lane: Lane
    epoch: int


class Epochs:
    """The epoch of one session, and the current fence of each lane that is open in it.

    A lane that was closed, or never opened, has no fence: everything of it is stale.
    """

    __slots__ = ("_current", "_session", "number")

    def __init__(self, session: str) -> None:
        self.number = 0
        """How often an answer of the session was cut off. Clients are told it, too."""

        self._session = session
        self._current: dict[Lane, Fence] = {}

    def open(self, lane: Lane) -> Fence:
        """Start a lane in the epoch that it is; opening an open lane returns its current fence."""
        return self._current.setdefault(lane, Fence(self._session, lane, self.number))

    def advance(self, lane: Lane) -> Fence:
        """Begin an epoch: all that the lane has out there is stale. Returns its new fence."""
        assert lane in self._current, f"the lane {lane} is not open"
        self.number += 1
        self._current[lane] = fence = Fence(self._session, lane, self.number)
        return fence

    def close(self, lane: Lane) -> None:
        """End a lane; late output of it is stale from now on."""
        self._current.pop(lane, None)

    def is_open(self, lane: Lane) -> bool:
        """Tell whether a lane has a fence."""
        return lane in self._current

    def fence(self, lane: Lane) -> Fence:
        """Return the current fence of an open lane."""
        return self._current[lane]

    def is_current(self, fence: Fence) -> bool:
        """Tell whether output under this fence may still go anywhere."""
        return self._current.get(fence.lane) == fence
