"""How many plain requests are worked on at a time, and who waits for one of the slots.

A slot that becomes free goes to whoever has waited longest. This module must not know what a
request is about.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from duologue.core.errors import CapacityError

RETRY_AFTER_S = 2.0


class RequestSlots:
    """The slots, and a queue before them.

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
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def fill(self) -> float:
        """Slots that are taken, as a share of all."""
        return self._taken / self._limit

    async def wait_idle(self) -> None:
        """Wait until none is taken."""
        await self._idle.wait()

    @asynccontextmanager
    async def taken(self, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot.

        Args:
            wait_s: How long the client would wait for one; 0: not at all.

        Raises:
            CapacityError: There is none.
        """
        await self._take(wait_s)
        self._idle.clear()
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, wait_s: float) -> None:
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
                self._give_back()  # it was handed over at the very moment
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(exc, TimeoutError):
                raise self._full() from None
            raise

    def _give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # the slot stays taken, and is another's now
                return
        self._taken -= 1
        if not self._taken:
            self._idle.set()

    def _full(self) -> CapacityError:
        return CapacityError(
            f"{self._taken} requests are worked on, the limit is {self._limit}",
            retry_after_s=RETRY_AFTER_S,
        )


def wished_wait_s(prefer: str | None, limit_s: float) -> float:
    """Read how long a client would wait, from its ``Prefer: wait=SECONDS`` (RFC 7240, 4.3).

    Args:
        limit_s: Nobody waits for longer.
    """
    for preference in (prefer or "").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait" and value.strip().isdecimal():
            return min(float(value.strip()[:6]), limit_s)
    return 0.0
