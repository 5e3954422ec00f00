"""A session host in a process of its own: the engine and the sessions, behind links.

This module must not know how its process is started, nor gateways.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from duologue import __version__
from duologue.composition.directories import configured_directory, host_context, link_secret
from duologue.composition.engine_side import EngineSide, make_engine_side
from duologue.composition.gateway_side import drained
from duologue.composition.kept import make_answers
from duologue.composition.orders import HostOrder
from duologue.core.clock import Clock, SystemClock
from duologue.core.ids import id_maker
from duologue.engines.pools.fleet import Progress
from duologue.gateway.keyring import Keyring
from duologue.hosts.directory import HostEntry
from duologue.hosts.host_server import HostParts, HostServer
from duologue.hosts.messages import Status
from duologue.hosts.rate_limit import RateLimit
from duologue.hosts.registrar import Registrar
from duologue.hosts.routing import tag_of, tagged_ids
from duologue.protocol.errors import ErrorCode
from duologue.settings import Settings
from duologue.telemetry import LoopLagProbe
from duologue.telemetry.gathering import FigureTaker


@dataclass(slots=True)
class HostApp:
    """A host that runs.

    Args:
        link_port: Where gateways of other machines come, if any may.
    """

    side: EngineSide
    server: HostServer
    link_port: int | None


@asynccontextmanager
async def running_host(
    settings: Settings,
    order: HostOrder,
    *,
    progress: Progress | None = None,
    clock: Clock | None = None,
    stop_now: asyncio.Event | None = None,
    on_drained: Callable[[], None] = lambda: None,
) -> AsyncIterator[HostApp]:
    """Start a host, and wait for its gateways; at the end, let calls finish first.

    Args:
        stop_now: Once set, calls that go on at the end are not waited for.
        on_drained: Called at the end when there is no session left; then gateways have a while to
            say goodbye to their clients before the links end.

    Raises:
        ConfigError: The settings name something that is not there.
        EngineError: A model cannot be started.
    """
    clock = clock or SystemClock()
    hosts = settings.hosts
    directory = configured_directory(hosts)
    new_id = tagged_ids(id_maker(), order.tag) if order.tag else None
    side = make_engine_side(settings, clock, new_id=new_id)
    loaded, tags = asyncio.Event(), [order.tag]
    server = _server(settings, order, side, clock, partial(_look, side, settings, tags, loaded))
    lag = LoopLagProbe(side.wheel, clock, side.metrics.loop_lag)
    async with AsyncExitStack() as undo:
        side.undone_by(undo)
        undo.push_async_callback(server.stop)
        undo.callback(lag.stop)
        kept = await undo.enter_async_context(AsyncExitStack())
        earlier = await side.keep_checkpoints(settings.sessions, clock, kept)
        tags.extend(sorted({tag for each in earlier if (tag := tag_of(each)) is not None}))
        await server.start()
        await server.listen_unix(Path(order.socket))
        link_port = None
        if hosts.link_port is not None:
            link_port = await server.listen_tcp(
                hosts.link_host, hosts.link_port, host_context(hosts)
            )
        lag.start()
        await side.engine.start(progress)
        await side.keep_jobs(undo)
        loaded.set()
        server.on_timer()
        if directory is not None and link_port is not None:
            registrar = Registrar(
                directory, partial(_entry, settings, order, side, link_port), hosts.directory_ttl_s
            )
            undo.push_async_callback(registrar.stop)
            await registrar.start()
        await server.wait_edges()
        yield HostApp(side, server, link_port)
        await _drain(side, server, settings, stop_now or asyncio.Event())
        await kept.aclose()  # before calls are ended: who comes back goes on at the next start
        side.sessions.close_all(ErrorCode.SHUTTING_DOWN)
        on_drained()
        await server.wait_left(3 * settings.gateway.close_timeout_s)


def _server(
    settings: Settings,
    order: HostOrder,
    side: EngineSide,
    clock: Clock,
    look: Callable[[], Status],
) -> HostServer:
    taker = FigureTaker(side.metrics, version=__version__, refresh=side.looks)
    now = clock.now()
    return HostServer(
        HostParts(
            name=order.name,
            version=__version__,
            sessions=side.host,
            engine=side.engine,
            look=look,
            figures=taker.take,
            slots=side.slots,
            answers=make_answers(settings.gateway.http, clock),
            jobs=side.jobs,
            lifecycle=side.engine.lifecycle,
            rates={
                key.owner.name: RateLimit(key.requests_per_minute, now)
                for key in Keyring(settings.gateway)
                if key.requests_per_minute is not None
            },
        ),
        settings.hosts.link,
        clock,
        side.wheel,
        secret=link_secret(settings.hosts),
        edges_expected=order.edges,
    )


def _look(
    side: EngineSide, settings: Settings, tags: Sequence[str], loaded: asyncio.Event
) -> Status:
    tag, *earlier = tags
    workers = side.workers()
    sessions = side.sessions
    return Status(
        loaded=loaded.is_set(),
        accepting=sessions.accepting,
        sessions=len(sessions),
        max_sessions=sessions.max_sessions,
        detached=sessions.detached,
        waiting=len(side.host.queue),
        workers_ready=workers.ready,
        workers=workers.total,
        every_stage=workers.every_stage,
        asleep=tuple(workers.asleep),
        paused=tuple(workers.paused),
        start=side.engine.lifecycle.start_report,
        tag=tag,
        earlier_tags=tuple(earlier),
    )


def _entry(settings: Settings, order: HostOrder, side: EngineSide, link_port: int) -> HostEntry:
    hosts = settings.hosts
    return HostEntry(
        tag=order.tag,
        address=hosts.link_address or hosts.link_host,
        port=link_port,
        free=side.sessions.max_sessions - len(side.sessions),
    )


async def _drain(
    side: EngineSide, server: HostServer, settings: Settings, stop_now: asyncio.Event
) -> None:
    """Let calls and requests that go on end by themselves, for a while."""
    side.sessions.accepting = False
    server.on_timer()
    async with asyncio.TaskGroup() as group:
        over = group.create_task(
            _all_over(side, server, settings.gateway.drain_timeout_s), name="drain"
        )
        await drained(over, stop_now)


async def _all_over(side: EngineSide, server: HostServer, timeout_s: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(side.sessions.wait_empty(timeout_s), name="drain-calls")
        group.create_task(server.wait_idle(timeout_s), name="drain-requests")
