from __future__ import annotations

import asyncio
from typing import Any, cast

from duologue.core.clock import SystemClock
from duologue.hosts.connecting import HostConnection
from duologue.hosts.directory import HostEntry
from duologue.hosts.fleet import HostFleet
from duologue.hosts.membership import Membership
from duologue.hosts.messages import Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.remote_host import RemoteHost
from duologue.hosts.settings import LinkSettings
from tests.unit.hosts.small_host import figures


def entry(tag: str) -> HostEntry:
    return HostEntry(tag=tag, address="10.0.0.1", port=9000)


class NoConnection:
    """Where a link would be kept."""

    async def run(self, _group: asyncio.TaskGroup) -> None:
        await asyncio.Event().wait()


class Scene:
    def __init__(self, *, local: bool = False) -> None:
        self.local = self._host() if local else None
        self.fleet = HostFleet(self.local, ["llm"])
        self.membership = Membership(self.fleet, self.local, self._connect)
        self.made: list[str] = []

    def _host(self) -> RemoteHost:
        return RemoteHost(["llm"], LinkSettings(), SystemClock(), figures)

    def _connect(self, entry: HostEntry) -> tuple[RemoteHost, HostConnection]:
        self.made.append(entry.tag)
        return self._host(), cast(HostConnection, NoConnection())


def link(host: RemoteHost, tag: str) -> None:
    host.joined("host", Outbox(lambda: None), cast(Any, None))
    host.hear(Status(loaded=True, tag=tag))


async def test_hosts_come_and_go_with_the_directory_but_not_while_there_is_a_link() -> None:
    scene = Scene()
    scene.membership.tell([entry("a")])
    assert scene.made == []
    await scene.membership.start()
    scene.membership.tell([entry("a"), entry("b")])
    scene.membership.tell([entry("a"), entry("b")])
    assert scene.made == ["a", "b"]
    first, _ = scene.fleet.members
    link(first, "a")
    scene.membership.tell([])
    assert scene.fleet.members == [first]
    first.lost()
    scene.membership.tell([])
    assert scene.fleet.members == []
    await scene.membership.stop()


async def test_the_own_host_is_not_linked_twice() -> None:
    scene = Scene(local=True)
    await scene.membership.start()
    scene.membership.tell([entry("own"), entry("a")])
    assert scene.made == []
    assert scene.local is not None
    link(scene.local, "own")
    scene.membership.tell([entry("own"), entry("a")])
    assert scene.made == ["a"]
    await scene.membership.stop()
