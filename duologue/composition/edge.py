"""One of several gateways, in a process of its own: everything but sessions and models.

This module must not know how its process is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from duologue import __version__
from duologue.composition.engine_side import labels, make_plugins, named_pipelines
from duologue.composition.gateway_side import GatewaySide, Ground, make_gateway_side
from duologue.composition.orders import EdgeOrder
from duologue.core.clock import Clock, SystemClock
from duologue.core.wheel import TimerWheel
from duologue.gateway.admission import Workers
from duologue.hosts.connecting import Address, HostConnection, Identity
from duologue.hosts.remote_host import RemoteHost
from duologue.protocol.errors import ErrorCode
from duologue.settings import Settings
from duologue.telemetry import Metrics
from duologue.telemetry.exposition import Page
from duologue.telemetry.gathering import FigureTaker, gathered_page


@dataclass(frozen=True, slots=True)
class EdgeApp:
    """A gateway that runs."""

    url: str
    host: RemoteHost
    gateway: GatewaySide


@asynccontextmanager
async def running_edge(
    settings: Settings, order: EdgeOrder, *, clock: Clock | None = None
) -> AsyncIterator[EdgeApp]:
    """Start a gateway; it takes connections at once, and calls as soon as its host does.

    At the end requests may finish; calls go on at the host, where clients can resume them.

    Raises:
        ConfigError: The settings cannot be used.
    """
    clock = clock or SystemClock()
    settings = _as_ordered(settings, order)
    pipelines = named_pipelines(settings)
    metrics = Metrics(labels(settings, pipelines))
    wheel = TimerWheel(asyncio.get_running_loop().call_at)
    taker = FigureTaker(metrics, version=__version__)
    host = RemoteHost(pipelines, settings.hosts.link, clock, taker.take)
    gateway = make_gateway_side(
        settings,
        Ground(
            host=host,
            engine=host.engine,
            plugins=make_plugins(settings),
            metrics=metrics,
            clock=clock,
            wheel=wheel,
            workers=lambda: _workers(host),
            shared=host,
            page=lambda accept: _page(host, accept),
            is_first=order.index == 0,
        ),
    )
    host.calls = gateway.calls
    taker.refresh = gateway.looks
    identity = Identity(order.name, __version__)
    connection = HostConnection(host, Address(path=Path(order.socket)), identity, clock, wheel)
    async with AsyncExitStack() as undo:
        undo.push_async_callback(connection.stop)
        await connection.start()
        gateway.undone_by(undo, lambda: host.leave(ErrorCode.SHUTTING_DOWN))
        await gateway.start(shared_port=True)
        if order.index == 0:  # a folder of jobs has one owner
            await undo.enter_async_context(gateway.media.running())
        gateway.admission.open()
        yield EdgeApp(gateway.url, host, gateway)
        await gateway.stop_listening()
        await gateway.door.wait_idle(settings.gateway.drain_timeout_s)


def _as_ordered(settings: Settings, order: EdgeOrder) -> Settings:
    changes: dict[str, object] = {"port": order.port}
    if order.signing_key and not settings.gateway.signing_keys:
        changes["signing_keys"] = (SecretStr(order.signing_key),)
    gateway = settings.gateway.model_copy(update=changes)
    return settings.model_copy(update={"gateway": gateway})


def _workers(host: RemoteHost) -> Workers:
    status = host.status
    everybody = status.edges >= status.edges_expected
    return Workers(
        status.workers_ready, status.workers, every_stage=status.every_stage and everybody
    )


async def _page(host: RemoteHost, accept: str) -> Page:
    processes = await host.all_figures()
    return await asyncio.to_thread(gathered_page, processes, accept)
