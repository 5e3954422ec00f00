"""Plain requests that are worked on, and those that wait: the one place that lets them in.

This module must not know what a request is about, nor how it is decided who is next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import CapacityError, RateLimited
from duologue.engines.ports import WorkClass
from duologue.hosts.class_slots import ClassSlots, Ticket
from duologue.hosts.port import Slot
from duologue.telemetry import LabelSets, Metrics

ONE_CLASS: Mapping[WorkClass, int] = {WorkClass.INTERACTIVE: 1}


class SlotsPort(Protocol):
    """The slots, wherever they are counted."""

    def taken(
        self, wanted: Slot, on_lost: Callable[[], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Hold a slot.

        Args:
            on_lost: Called where whoever counts is gone, and the slot with it.

        Raises:
            RateLimited: The owner has as many as it may.
            CapacityError: There is none, or whoever counts cannot be reached.
        """
        ...


class RequestSlots:
    """The slots, and a queue before them. A ``SlotsPort``.

    Args:
        limit: How many there are.
        queue: How many requests may wait; 0: none.
        weights: Of the classes of work that there are.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        limit: int,
        queue: int,
        weights: Mapping[WorkClass, int] = ONE_CLASS,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._slots = ClassSlots(limit, queue, weights)
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics(LabelSets())
        self._turns: dict[Ticket, asyncio.Future[None]] = {}

    @property
    def fill(self) -> float:
        """Slots that are taken, as a share of all."""
        return self._slots.taken.total() / self._slots.limit

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._slots.waiting)

    @asynccontextmanager
    async def taken(
        self, wanted: Slot, _on_lost: Callable[[], None] | None = None
    ) -> AsyncIterator[None]:
        """Hold a slot, which is not lost here; raises ``RateLimited`` or ``CapacityError``."""
        ticket = await self.take(wanted)
        try:
            yield
        finally:
            self.give_back(ticket)

    @asynccontextmanager
    async def taken_by_job(self, owner_name: str) -> AsyncIterator[None]:
        """Hold a slot for a job, which has been queued where jobs are, and waits for as long."""
        ticket = Ticket(WorkClass.BATCH, owner_name)
        await self._wait_for(ticket, None, queued=0)
        try:
            yield
        finally:
            self.give_back(ticket)

    async def take(self, wanted: Slot) -> Ticket:
        """As ``taken``; the ticket is to be given back."""
        owner = wanted.owner
        ticket = Ticket(wanted.work, owner.name, owner.max_requests)
        try:
            await self._wait_for(ticket, wanted.wait_s, queued=1)
        except (CapacityError, RateLimited) as exc:
            self._metrics.class_refused[wanted.work.value].inc()
            if isinstance(exc, RateLimited):
                self._metrics.key_refused[owner.name].inc()
            raise
        return ticket

    def give_back(self, ticket: Ticket) -> None:
        """Give a slot to whoever is next, or to nobody."""
        leaving = [ticket]
        while leaving:
            for following in self._slots.leave(leaving.pop(), self._clock.now()):
                turn = self._turns.pop(following)
                if turn.done():
                    leaving.append(following)  # whoever waited has gone at this very moment
                else:
                    turn.set_result(None)
        self._note()

    async def _wait_for(self, ticket: Ticket, wait_s: float | None, queued: int) -> None:
        since = self._clock.now()
        may_wait = wait_s is None or wait_s > 0
        if not self._slots.ask(ticket, since, may_wait=may_wait, queued=queued):
            turn = self._turns[ticket] = asyncio.get_running_loop().create_future()
            self._note()
            try:
                async with asyncio.timeout(wait_s):
                    await turn
            except BaseException as exc:
                self._turns.pop(ticket, None)
                self.give_back(ticket)  # it may have been handed over at the very moment
                if isinstance(exc, TimeoutError):
                    raise self._slots.refusal(ticket) from None
                raise
        self._metrics.class_wait[ticket.work.value].observe(self._clock.now() - since)
        self._note()

    def _note(self) -> None:
        for work in WorkClass:
            self._metrics.class_active[work.value].set(self._slots.taken[work])
        waiting = self._slots.waiting
        for work in WorkClass:
            count = sum(ticket.work is work for ticket in waiting)
            self._metrics.class_waiting[work.value].set(count)
