"""Calls that wait for a place, in the order in which they came.

Bounded, and only for clients that have asked for it: the others are refused at once and told when
to come back. This module must not know connections, sessions or time.
"""

from __future__ import annotations

from typing import Protocol

from duologue.core.errors import CapacityError
from duologue.telemetry import Counter, Family

RETRY_AFTER_S = 5.0


class Waiting(Protocol):
    """Somebody in the queue."""

    def on_position(self, position: int, waiting: int) -> None:
        """Your place in the queue has changed; 1 is the next. Must not change the queue."""
        ...


class CallQueue:
    """First come, first served.

    Args:
        capacity: How many may wait; 0: nobody.
        outcomes: Counts what became of those who waited.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, capacity: int, outcomes: Family[Counter] | None = None) -> None:
        self.capacity = capacity
        self._outcomes = Family(Counter, ()) if outcomes is None else outcomes
        self._members: dict[Waiting, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    @property
    def fill(self) -> float:
        """How full it is."""
        return len(self._members) / self.capacity if self.capacity else 0.0

    def check_room(self) -> None:
        """Refuse what ``join`` would refuse.

        Raises:
            CapacityError: As many wait as may.
        """
        if len(self._members) >= self.capacity:
            raise CapacityError(
                f"all places are taken, and {len(self._members)} calls wait for one: the limit is "
                f"{self.capacity}",
                retry_after_s=RETRY_AFTER_S,
            )

    def check_turn(self) -> None:
        """Refuse who would overtake others.

        Raises:
            CapacityError: They wait for a place.
        """
        if self._members:
            raise others_wait(len(self._members))

    def join(self, member: Waiting) -> None:
        """Stand at the end; told its position at once.

        Raises:
            CapacityError: As ``check_room``.
        """
        self.check_room()
        self._members[member] = None
        member.on_position(len(self._members), len(self._members))

    def leave(self, member: Waiting, outcome: str) -> None:
        """Go, to a place or away; whoever is not there may go too. Those behind are told."""
        if member not in self._members:
            return
        del self._members[member]
        self._outcomes[outcome].inc()
        for number, each in enumerate(self._members, 1):
            each.on_position(number, len(self._members))


def others_wait(waiting: int) -> CapacityError:
    """Return the refusal of a call that does not wait, where others do."""
    return CapacityError(
        f"all places are taken, and {waiting} calls wait for one", retry_after_s=RETRY_AFTER_S
    )
