"""How many workers may load at a time: all side by side, unless that is too much for the machine.

A model takes more memory while it is loaded than afterwards, and its first steps all cores. This
module must not know workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Return how much memory this machine has left for new processes; ``None``: it does not say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


class StartGate:
    """Lets starts through, in the order in which they come.

    Args:
        limit: At a time; 0: any number.
        min_free_bytes: While the machine has less, only one at a time.
        available: Returns what it has.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        limit: int = 0,
        min_free_bytes: int = 0,
        available: Callable[[], int | None] = available_bytes,
    ) -> None:
        self._limit = limit
        self._min_free_bytes = min_free_bytes
        self._available = available
        self._starting = 0
        self._turns: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn to start something, and hold it meanwhile."""
        if self._turns or not self._has_room():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._turns:
                    self._turns.remove(turn)
                else:
                    self._leave()
                raise
        else:
            self._starting += 1
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self._starting -= 1
        while self._turns and self._has_room():
            turn = self._turns.pop(0)
            if not turn.cancelled():
                self._starting += 1
                turn.set_result(None)

    def _has_room(self) -> bool:
        if not self._starting:
            return True  # nobody is waited for, so it would wait for ever
        if self._limit and self._starting >= self._limit:
            return False
        available = self._available() if self._min_free_bytes else None
        return available is None or available >= self._min_free_bytes
