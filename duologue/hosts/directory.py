"""Where session hosts are found: what a directory holds, and what it can do.

Without one, a gateway knows the host of its own machine alone. This module must not know where a
directory is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One session host.

    Args:
        tag: Of this start of it; stands in the ids of its sessions.
        address, port: Where gateways of other machines reach it.
        free: Sessions that it has room for; gateways that have a link know better.
    """

    tag: str
    address: str
    port: int
    free: int = 0


class DirectoryLost(Exception):
    """It cannot be reached at the moment; what was known stays known."""


class Directory(Protocol):
    """Keeps entries for as long as their hosts say that they are there."""

    async def put(self, entry: HostEntry, ttl_s: float) -> None:
        """Keep an entry for so long; again and again, while the host lives.

        Raises:
            DirectoryLost: It could not be kept.
        """
        ...

    async def remove(self, tag: str) -> None:
        """Forget a host that stops; raises ``DirectoryLost``."""
        ...

    async def entries(self) -> Sequence[HostEntry]:
        """Return all hosts; raises ``DirectoryLost``."""
        ...

    async def close(self) -> None:
        """Let go of what it holds open."""
        ...
