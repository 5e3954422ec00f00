"""One of several gateways, in a process of its own: everything but sessions and models.

This module must not know how its process is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from duologue import __version__
from duologue.composition.directories import configured_directory, gateway_context, link_secret
from duologue.composition.engine_side import labels, make_plugins, named_pipelines
from duologue.composition.gateway_side import GatewaySide, Ground, make_gateway_side
from duologue.composition.kept import makes_videos
from duologue.composition.orders import EdgeOrder
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError
from duologue.core.wheel import TimerWheel
from duologue.gateway.admission import Workers
from duologue.hosts.connecting import Address, HostConnection, Identity
from duologue.hosts.directory import Directory, HostEntry
from duologue.hosts.fleet import HostFleet
from duologue.hosts.membership import Membership
from duologue.hosts.registrar import Lookout
from duologue.hosts.remote_host import RemoteHost
from duologue.protocol.errors import ErrorCode
from duologue.settings import Settings
from duologue.telemetry import Metrics
from duologue.telemetry.exposition import Page
from duologue.telemetry.gathering import FigureTaker, gathered_page


@dataclass(frozen=True, slots=True)
class EdgeApp:
    """A gateway that runs.

    Args:
        host: That of its own machine.
        fleet: All hosts that it knows.
    """

    url: str
    host: RemoteHost
    fleet: HostFleet
    gateway: GatewaySide


@dataclass(frozen=True, slots=True)
class Uplinks:
    """How a gateway makes links."""

    settings: Settings
    order: EdgeOrder
    pipelines: Collection[str]
    taker: FigureTaker
    clock: Clock
    wheel: TimerWheel

    def host(self) -> RemoteHost:
        """Return a host without a link."""
        link = self.settings.hosts.link
        return RemoteHost(self.pipelines, link, self.clock, self.taker.take)

    def local(self, host: RemoteHost) -> HostConnection:
        """Return what keeps the link to the host of this machine."""
        secret = link_secret(self.settings.hosts)
        return self._connection(host, Address(path=Path(self.order.socket)), secret)

    def elsewhere(self, entry: HostEntry) -> tuple[RemoteHost, HostConnection]:
        """Return a host of another machine, and what keeps its link."""
        host = self.host()
        address = Address(host=entry.address, port=entry.port)
        return host, self._connection(host, address, link_secret(self.settings.hosts))

    def _connection(self, host: RemoteHost, address: Address, secret: bytes) -> HostConnection:
        context = None if address.path is not None else gateway_context(self.settings.hosts)
        identity = Identity(self.order.name, __version__, secret, context)
        return HostConnection(host, address, identity, self.clock, self.wheel)


@asynccontextmanager
async def running_edge(
    settings: Settings, order: EdgeOrder, *, clock: Clock | None = None
) -> AsyncIterator[EdgeApp]:
    """Start a gateway. It takes connections in any case, and calls as soon as a host does.

    At the end requests may finish; calls go on at their hosts, where clients can resume them.

    Raises:
        ConfigError: The settings cannot be used.
    """
    clock = clock or SystemClock()
    settings = _as_ordered(settings, order)
    directory = configured_directory(settings.hosts)
    if directory is None and not order.socket:
        raise ConfigError("gateways without a host on their machine need hosts.directory_url")
    pipelines = named_pipelines(settings)
    metrics = Metrics(labels(settings, pipelines))
    wheel = TimerWheel(asyncio.get_running_loop().call_at)
    taker = FigureTaker(metrics, version=__version__)
    links = Uplinks(settings, order, pipelines, taker, clock, wheel)
    host = links.host()
    fleet = HostFleet(host if order.socket else None, pipelines)
    gateway = make_gateway_side(
        settings,
        Ground(
            host=fleet,
            engine=fleet.engine,
            plugins=make_plugins(settings),
            metrics=metrics,
            clock=clock,
            wheel=wheel,
            workers=lambda: _workers(fleet),
            slots=fleet.slots,
            answers=fleet.answers,
            jobs=fleet.jobs if makes_videos(pipelines.values()) else None,
            lifecycle=fleet.lifecycle,
            shared=fleet,
            page=lambda accept: _page(fleet, accept),
            is_first=order.index == 0,
        ),
    )
    fleet.calls = gateway.calls
    taker.refresh = gateway.looks
    async with AsyncExitStack() as undo:
        undo.push_async_callback(fleet.stop)
        await fleet.start()
        if order.socket:
            connection = links.local(host)
            undo.push_async_callback(connection.stop)
            await connection.start()
            # One that takes the place of another shares a port on which calls come back already: to
            # refuse them until there is a link would keep them waiting.
            await connection.first_news()
        if directory is not None:
            await _look_out(directory, fleet, host if order.socket else None, links, undo)
        gateway.undone_by(undo, lambda: fleet.leave(ErrorCode.SHUTTING_DOWN))
        await gateway.start(shared_port=True)
        gateway.admission.open()
        yield EdgeApp(gateway.url, host, fleet, gateway)
        await gateway.stop_listening()
        await gateway.door.wait_idle(settings.gateway.drain_timeout_s)


async def _look_out(
    directory: Directory,
    fleet: HostFleet,
    local: RemoteHost | None,
    links: Uplinks,
    undo: AsyncExitStack,
) -> None:
    """Hold links to the hosts that the directory names."""
    members = Membership(fleet, local, links.elsewhere)
    undo.push_async_callback(members.stop)
    await members.start()
    lookout = Lookout(directory, members.tell)
    undo.push_async_callback(lookout.stop)
    await lookout.start()


def _as_ordered(settings: Settings, order: EdgeOrder) -> Settings:
    changes: dict[str, object] = {"port": order.port}
    if order.signing_key and not settings.gateway.signing_keys:
        changes["signing_keys"] = (SecretStr(order.signing_key),)
    gateway = settings.gateway.model_copy(update=changes)
    return settings.model_copy(update={"gateway": gateway})


def _workers(fleet: HostFleet) -> Workers:
    status = fleet.status
    everybody = status.edges >= status.edges_expected
    return Workers(
        status.workers_ready,
        status.workers,
        every_stage=status.every_stage and everybody,
        asleep=status.asleep,
        paused=status.paused,
        start=status.start,
        max_sessions=status.max_sessions,
    )


async def _page(fleet: HostFleet, accept: str) -> Page:
    processes = await fleet.all_figures()
    return await asyncio.to_thread(gathered_page, processes, accept)
