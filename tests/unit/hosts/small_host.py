"""A session host that listens, with sessions but without an engine that works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from duologue.core.clock import SystemClock
from duologue.core.wheel import TimerWheel
from duologue.hosts.answers import LocalAnswers
from duologue.hosts.connecting import Address, HostConnection, Identity
from duologue.hosts.host_server import HostParts, HostServer
from duologue.hosts.idempotency import IdempotencyKeys
from duologue.hosts.local import LocalHost
from duologue.hosts.messages import Status
from duologue.hosts.rate_limit import RateLimit
from duologue.hosts.remote_host import RemoteHost
from duologue.hosts.request_slots import RequestSlots
from duologue.hosts.settings import LinkSettings
from duologue.hosts.spoken_answers import SpokenAnswers
from duologue.sessions.manager import SessionManager
from duologue.telemetry.gathering import ProcessFigures
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin

RATE = 2


async def figures(process: str) -> ProcessFigures:
    return ProcessFigures(process, [])


@dataclass
class SmallHost:
    server: HostServer
    call: FakeCall
    loaded: bool = True

    @property
    def sessions(self) -> SessionManager:
        return self.call.manager

    def look(self) -> Status:
        return Status(
            loaded=self.loaded,
            accepting=self.sessions.accepting,
            sessions=len(self.sessions),
            max_sessions=4,
        )


@asynccontextmanager
async def small_host(
    path: Path, *, edges_expected: int = 0, secret: bytes = b""
) -> AsyncIterator[SmallHost]:
    """One session is open already."""
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    call = FakeCall(FakePlugin())
    host: SmallHost
    server = HostServer(
        HostParts(
            name="host",
            version="1",
            sessions=LocalHost(call.manager, call.clock, call.wheel),
            engine=call.engine,
            look=lambda: host.look(),
            figures=figures,
            slots=RequestSlots(1, 1),
            answers=LocalAnswers(IdempotencyKeys(60, 8, 1000), SpokenAnswers(), clock),
            rates={"kitchen": RateLimit(RATE, clock.now())},
        ),
        LinkSettings(),
        clock,
        wheel,
        secret=secret,
        edges_expected=edges_expected,
    )
    host = SmallHost(server, call)
    await server.start()
    await server.listen_unix(path)
    try:
        yield host
    finally:
        await server.stop()


@asynccontextmanager
async def edge_of(path: Path, name: str = "edge-0") -> AsyncIterator[RemoteHost]:
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    remote = RemoteHost(["vad"], LinkSettings(), clock, figures)
    connection = HostConnection(remote, Address(path), Identity(name, "1"), clock, wheel)
    await connection.start()
    try:
        await remote.wait_status(lambda status: status.loaded)
        yield remote
    finally:
        await connection.stop()
