"""Keeps what a directory and this process know of each other up to date.

A session host says again and again that it is there; a gateway asks again and again who is. A
directory that cannot be reached changes nothing: links go on, and what was known stays known. This
module must not know where a directory is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from duologue.hosts.directory import Directory, DirectoryLost, HostEntry
from duologue.telemetry import get_logger

LOOK_S = 1.0
"""How often a gateway asks who is there."""


class _Loop:
    """Does something again and again until it is stopped.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, directory: Directory, every_s: float) -> None:
        self._directory = directory
        self._every_s = every_s
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_lost = False
        self._log = get_logger("directory")

    async def start(self) -> None:
        """Begin; the first time is over when this returns."""
        await self._once()
        # Entered and left by hand: what happens between is not the group's.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group
        self._task = group.create_task(self._run(), name="directory")

    async def stop(self) -> None:
        """Do it no more."""
        group, self._group = self._group, None
        if group is not None and self._task is not None:
            self._task.cancel()
            await group.__aexit__(None, None, None)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._once()

    async def _once(self) -> None:
        try:
            await self._do()
        except DirectoryLost as exc:
            if not self._is_lost:
                self._log.error("directory_lost", reason=str(exc))
            self._is_lost = True
            return
        if self._is_lost:
            self._log.info("directory_back")
        self._is_lost = False

    async def _do(self) -> None:
        raise NotImplementedError


class Registrar(_Loop):
    """Says that a host is there.

    Args:
        look: Returns the entry as it is now.
        ttl_s: A host that has said nothing for so long is not there.
    """

    def __init__(self, directory: Directory, look: Callable[[], HostEntry], ttl_s: float) -> None:
        super().__init__(directory, ttl_s / 3)
        self._look = look
        self._ttl_s = ttl_s

    async def stop(self) -> None:
        """Say that it is there no more."""
        await super().stop()
        with suppress(DirectoryLost):
            await self._directory.remove(self._look().tag)
        await self._directory.close()

    async def _do(self) -> None:
        await self._directory.put(self._look(), self._ttl_s)


class Lookout(_Loop):
    """Asks who is there.

    Args:
        tell: Is told of all hosts that the directory knows.
    """

    def __init__(self, directory: Directory, tell: Callable[[Sequence[HostEntry]], None]) -> None:
        super().__init__(directory, LOOK_S)
        self._tell = tell

    async def stop(self) -> None:
        """Ask no more."""
        await super().stop()
        await self._directory.close()

    async def _do(self) -> None:
        self._tell(await self._directory.entries())
