"""How long replies are waited for: not while there is no connection, on which none could come.

This module must not know what is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Waits:
    """All that is waited for in one call.

    Args:
        timeout_s: For each reply, from when it is asked for or from when the connection is back.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._limits: set[asyncio.Timeout] = set()
        self._paused = False

    async def run(self, reply: Awaitable[T]) -> T:
        """Wait for a reply.

        Raises:
            TimeoutError: It has not come.
        """
        async with asyncio.timeout(None if self._paused else self.timeout_s) as limit:
            self._limits.add(limit)
            try:
                return await reply
            finally:
                self._limits.discard(limit)

    def pause(self) -> None:
        """The connection is lost: the time stands still."""
        self._paused = True
        for limit in self._limits:
            limit.reschedule(None)

    def go_on(self) -> None:
        """The connection is back: each reply has its whole time again."""
        self._paused = False
        at = asyncio.get_running_loop().time() + self.timeout_s
        for limit in self._limits:
            limit.reschedule(at)
