"""Which session hosts a gateway holds links to: those that a directory names, while they are there.

A host that the directory no longer names is let go once its link is gone, too: a directory may have
lost its memory, and calls go on as long as there is a link. This module must not know where a
directory is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from duologue.hosts.connecting import HostConnection
from duologue.hosts.directory import HostEntry
from duologue.hosts.fleet import HostFleet
from duologue.hosts.remote_host import RemoteHost
from duologue.telemetry import get_logger

Connect = Callable[[HostEntry], tuple[RemoteHost, HostConnection]]


class Membership:
    """Links to hosts of other machines.

    Args:
        local: The host of the gateway's own machine, which is in the directory too.
        connect: Makes a host of an entry, and what keeps its link.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, fleet: HostFleet, local: RemoteHost | None, connect: Connect) -> None:
        self._fleet = fleet
        self._local = local
        self._connect = connect
        self._group: asyncio.TaskGroup | None = None
        self._known: dict[str, tuple[RemoteHost, asyncio.Task[None]]] = {}
        self._log = get_logger("directory")

    async def start(self) -> None:
        """From now on there may be links, until ``stop``."""
        # Entered and left by hand: what happens between is not the group's.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group

    async def stop(self) -> None:
        """Let go of all hosts."""
        group, self._group = self._group, None
        if group is not None:
            for _, task in self._known.values():
                task.cancel()
            await group.__aexit__(None, None, None)

    def tell(self, entries: Sequence[HostEntry]) -> None:
        """Link to hosts that are new, and let go of those that are gone."""
        group = self._group
        if group is None or (self._local is not None and not self._local.is_linked):
            return  # which of them is our own is not known yet
        own = None if self._local is None else self._local.status.tag
        named = {entry.tag: entry for entry in entries if entry.tag != own}
        for tag, entry in named.items():
            if tag not in self._known:
                host, connection = self._connect(entry)
                task = group.create_task(connection.run(group), name=f"host-{tag}")
                self._known[tag] = host, task
                self._fleet.add(host)
                self._log.info("host_found", tag=tag, address=entry.address, port=entry.port)
        for tag, (host, task) in list(self._known.items()):
            if tag not in named and not host.is_linked:
                task.cancel()
                self._fleet.remove(host)
                del self._known[tag]
                self._log.info("host_forgotten", tag=tag)
