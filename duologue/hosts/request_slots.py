"""How many plain requests are worked on at a time, and who waits for one of the slots.

A slot that becomes free goes to whoever has waited longest. This module must not know what a
request is about.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from duologue.core.errors import CapacityError

RETRY_AFTER_S = 2.0


class SlotsPort(Protocol):
    """The slots, wherever they are counted."""

    def taken(self, wait_s: float) -> AbstractAsyncContextManager[None]:
        """Hold a slot.

        Args:
            wait_s: How long the client would wait for one; 0: not at all.

        Raises:
            CapacityError: There is none, or whoever counts cannot be reached.
        """
        ...


class RequestSlots:
    """The slots, and a queue before them. A ``SlotsPort``.

    Args:
        limit: How many there are.
        queue: How many requests may wait; 0: none.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, limit: int, queue: int) -> None:
        self._limit = limit
        self._queue = queue
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def fill(self) -> float:
        """Slots that are taken, as a share of all."""
        return self._taken / self._limit

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._waiting)

    @asynccontextmanager
    async def taken(self, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot.

        Args:
            wait_s: How long the client would wait for one; 0: not at all.

        Raises:
            CapacityError: There is none.
        """
        await self.take(wait_s)
        try:
            yield
        finally:
            self.give_back()

    async def take(self, wait_s: float) -> None:
        """As ``taken``; what is taken is to be given back."""
        if self._taken < self._limit:
            self._taken += 1
            return
        if wait_s <= 0 or len(self._waiting) >= self._queue:
            raise self._full()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(wait_s):
                await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it was handed over at the very moment
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(exc, TimeoutError):
                raise self._full() from None
            raise

    def give_back(self) -> None:
        """Give a slot to whoever has waited longest, or to nobody."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # the slot stays taken, and is another's now
                return
        self._taken -= 1

    def _full(self) -> CapacityError:
        return CapacityError(
            f"{self._taken} requests are worked on, the limit is {self._limit}",
            retry_after_s=RETRY_AFTER_S,
        )
