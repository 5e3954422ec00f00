"""Keeps the newest of what comes in; what it takes the place of is stale.

This module must not know what comes in.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """A place for one.

    Concurrency:
        One task takes; ``put`` and ``clear`` may come from others of the same loop.
    """

    def __init__(self) -> None:
        self._waiting: list[T] = []
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, value: T) -> bool:
        """Keep a value.

        Returns:
            Whether one that nobody had taken had to go.
        """
        stale = self.clear()
        self._waiting.append(value)
        self._news.set()
        return stale

    def clear(self) -> bool:
        """Keep nothing; tells whether there was something."""
        stale = bool(self._waiting)
        self._waiting.clear()
        return stale

    async def take(self) -> T:
        """Wait for a value."""
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        return self._waiting.pop()
