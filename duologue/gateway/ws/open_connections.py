"""How many connections are open, for a server that waits for them at its end.

This module must not know what a connection is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from duologue.telemetry import get_logger


class OpenConnections:
    """Counts connections.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = get_logger("gateway")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A connection is open for as long as this lasts."""
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until no connection is open. Each ends by itself, soon after its session has."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            self._log.warning("connections_left", connections=self._count)
