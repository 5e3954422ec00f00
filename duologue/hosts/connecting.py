"""Keeps a link to a session host: connects, and connects again when it was lost.

This module must not know what is said on the link.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.hosts.handshake import EdgeHandshake
from duologue.hosts.link import Link
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.messages import Status
from duologue.hosts.outbox import Outbox
from duologue.hosts.remote_host import RemoteHost
from duologue.telemetry import get_logger

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host listens: a path, or a machine and a port."""

    path: Path | None = None
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Identity:
    """What this end of links is called, and the secret that it knows."""

    edge: str
    version: str
    secret: bytes = b""
    context: ssl.SSLContext | None = None


class HostConnection:
    """One host's link.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        host: RemoteHost,
        address: Address,
        identity: Identity,
        clock: Clock,
        wheel: TimerWheel,
    ) -> None:
        self._host = host
        self._address = address
        self._identity = identity
        self._clock = clock
        self._wheel = wheel
        self._log = get_logger("hosts")
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._missed = asyncio.Event()

    async def start(self) -> None:
        """From now on there is a link whenever there can be one, until ``stop``."""
        # Entered and left by hand: what happens between is not the group's.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group
        self._task = group.create_task(self.run(group), name=f"link-{self._address}")

    async def first_news(self) -> None:
        """Wait until the host has said how it is, or could not be reached."""
        async with asyncio.TaskGroup() as group:
            news = (
                group.create_task(self._missed.wait(), name="link-missed"),
                group.create_task(self._host.wait_status(_was_told), name="link-status"),
            )
            await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            for each in news:
                each.cancel()

    async def stop(self) -> None:
        """Let go of the host."""
        group, self._group = self._group, None
        if group is not None and self._task is not None:
            self._task.cancel()
            await group.__aexit__(None, None, None)

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Hold a link, and make another when it is lost. Waits longer after each failure."""
        wait_s = FIRST_WAIT_S
        while True:
            if await self._hold(group):
                wait_s = FIRST_WAIT_S
            self._missed.set()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _hold(self, group: asyncio.TaskGroup) -> bool:
        """Hold a link while it lasts; returns whether there was one."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[str] = loop.create_future()
        identity, address = self._identity, self._address

        def made(link: Link, outbox: Outbox) -> LinkEnd:
            self._log.info("host_joined", host=link.peer, address=str(address))
            return self._host.joined(link.peer, outbox, group)

        def gone(link: Link, why: str) -> None:
            if link.end is not None:
                self._host.lost()
            if not over.done():
                over.set_result(why)

        handshake = EdgeHandshake(
            identity.edge, identity.version, identity.secret, secrets.token_bytes
        )
        link = Link(handshake, made, gone, self._clock, self._wheel)
        try:
            if address.path is not None:
                await loop.create_unix_connection(lambda: link, str(address.path))
            else:
                await loop.create_connection(
                    lambda: link, address.host, address.port, ssl=identity.context
                )
        except OSError as exc:
            self._log.debug("host_not_reached", address=str(address), reason=exc.strerror)
            return False
        try:
            why = await over
        finally:
            link.close("the gateway stops")
        self._log.warning("host_left", address=str(address), reason=why)
        return link.end is not None


def _was_told(status: Status) -> bool:
    return status.max_sessions > 0
