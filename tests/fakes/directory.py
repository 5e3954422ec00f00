"""A directory in memory, which a test may take away."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.hosts.directory import DirectoryLost, HostEntry


class FakeDirectory:
    def __init__(self) -> None:
        self.kept: dict[str, HostEntry] = {}
        self.puts = 0
        self.is_lost = False
        self.closed = False

    async def put(self, entry: HostEntry, ttl_s: float) -> None:
        self._check()
        self.puts += 1
        self.kept[entry.tag] = entry

    async def remove(self, tag: str) -> None:
        self._check()
        self.kept.pop(tag, None)

    async def entries(self) -> Sequence[HostEntry]:
        self._check()
        return list(self.kept.values())

    async def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.is_lost:
            raise DirectoryLost("ConnectionError")
