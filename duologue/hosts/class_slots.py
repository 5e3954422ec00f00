"""Which request is worked on next: slots by class of work, and limits of API keys. Pure.

Each class has a share of the slots by its weight. What it does not use is lent, but for a part that
stays free, so that whoever comes finds room; as requests end, the class that has least of its share
is next. This module must not know connections, nor what a request is about; ``now`` is handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duologue.core.errors import CapacityError, RateLimited
from duologue.engines.ports import WorkClass

KEPT = 0.5
"""Of a share that its class does not use: what stays free for it."""

SHORTEST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
_SMOOTHING = 0.1


@dataclass(eq=False, slots=True)
class Ticket:
    """A request.

    Args:
        work: Its class.
        owner: Whose it is: the name of an API key.
        most: How many of the owner's may be worked on at a time; ``None``: as many as there is
            room for.
        began_at: Since when it is worked on; ``None``: it waits.
    """

    work: WorkClass
    owner: str = ""
    most: int | None = None
    began_at: float | None = None


class ClassSlots:
    """The slots.

    Args:
        limit: How many there are.
        queue: How many requests may wait.
        weights: Of the classes that there are; others have no share of their own.
    """

    def __init__(self, limit: int, queue: int, weights: Mapping[WorkClass, int]) -> None:
        total = sum(weights.values()) or 1
        self.limit = limit
        self.waiting: list[Ticket] = []
        self.taken: Counter[WorkClass] = Counter()
        self._queue = queue
        self._weights = weights
        self._shares = {work: limit * weight / total for work, weight in weights.items()}
        self._kept = {
            work: int(share * KEPT) if len(weights) > 1 else 0
            for work, share in self._shares.items()
        }
        self._of_owner: Counter[str] = Counter()
        self._mean_s: dict[WorkClass, float] = {}

    def ask(self, ticket: Ticket, now: float, *, may_wait: bool, queued: int = 1) -> bool:
        """Let a request in.

        Args:
            may_wait: It would rather wait than be refused.
            queued: How much it counts in the queue; 0: it has been queued elsewhere.

        Returns:
            Whether it begins now; else it waits.

        Raises:
            RateLimited: Its owner has as many as it may.
            CapacityError: There is no slot for it, or too many wait.
        """
        self.waiting.append(ticket)
        self._begin_next(now, ticket)
        if ticket.began_at is not None:
            return True
        if may_wait and (not queued or len(self.waiting) <= self._queue):
            return False
        self.waiting.remove(ticket)
        raise self.refusal(ticket)

    def leave(self, ticket: Ticket, now: float) -> Sequence[Ticket]:
        """End a request, or one that waits; returns those that begin now.

        One that has left already may leave again.
        """
        if ticket.began_at is None:
            if ticket in self.waiting:
                self.waiting.remove(ticket)
            return ()
        self.taken[ticket.work] -= 1
        self._of_owner[ticket.owner] -= 1
        if not self._of_owner[ticket.owner]:
            del self._of_owner[ticket.owner]
        took_s, ticket.began_at = now - ticket.began_at, None
        mean_s = self._mean_s.get(ticket.work, took_s)
        self._mean_s[ticket.work] = mean_s + _SMOOTHING * (took_s - mean_s)
        begun = []
        while (following := self._next()) is not None:
            self._begin(following, now)
            begun.append(following)
        return begun

    def expected_wait_s(self, work: WorkClass) -> float:
        """Return how long one more request of a class would wait, from how long they took."""
        slots = max(1.0, self._shares.get(work, 1.0))
        ahead = sum(each.work is work for each in self.waiting) + 1
        expected_s = self._mean_s.get(work, 0.0) * ahead / slots
        return min(max(expected_s, SHORTEST_RETRY_S), LONGEST_RETRY_S)

    def refusal(self, ticket: Ticket) -> CapacityError | RateLimited:
        """Return why a request is not let in, and when it may be."""
        retry_after_s = self.expected_wait_s(ticket.work)
        if self._is_at_limit(ticket):
            return RateLimited(
                f"{self._of_owner[ticket.owner]} requests of this API key are worked on, its limit "
                f"is {ticket.most}",
                retry_after_s=retry_after_s,
            )
        taken = self.taken.total()
        others = taken - self.taken[ticket.work]
        text = f"{taken} requests are worked on, the limit is {self.limit}"
        if taken < self.limit:
            text = (
                f"{self.taken[ticket.work]} requests of the class {ticket.work.value} are worked "
                f"on and {others} others; what is left of {self.limit} is kept for other classes"
            )
        return CapacityError(text, retry_after_s=retry_after_s)

    def _begin_next(self, now: float, ticket: Ticket) -> None:
        """Let a request begin if it is its turn: then no other could, or it would have begun."""
        if self._next() is ticket:
            self._begin(ticket, now)

    def _begin(self, ticket: Ticket, now: float) -> None:
        self.waiting.remove(ticket)
        ticket.began_at = now
        self.taken[ticket.work] += 1
        self._of_owner[ticket.owner] += 1

    def _next(self) -> Ticket | None:
        """The request that may begin: of the class that has least of its share, the oldest."""
        oldest: dict[WorkClass, Ticket] = {}
        for ticket in self.waiting:
            if ticket.work not in oldest and not self._is_at_limit(ticket):
                oldest[ticket.work] = ticket
        fitting = [ticket for work, ticket in oldest.items() if self._has_room(work)]
        return min(fitting, key=lambda ticket: self._part_of_share(ticket.work), default=None)

    def _has_room(self, work: WorkClass) -> bool:
        free = self.limit - self.taken.total()
        if free <= 0:
            return False
        if self.taken[work] < self._kept.get(work, 0):
            return True
        for_others = sum(
            max(0, kept - self.taken[other]) for other, kept in self._kept.items() if other != work
        )
        return free > for_others

    def _part_of_share(self, work: WorkClass) -> float:
        weight = self._weights.get(work, 0)
        return (self.taken[work] + 1) / weight if weight else float("inf")

    def _is_at_limit(self, ticket: Ticket) -> bool:
        return ticket.most is not None and self._of_owner[ticket.owner] >= ticket.most
