"""The composition root: settings in, a server that runs in one process out.

Nothing else looks anything up globally; every part gets what it needs from here and from
``composition``, which also puts together what runs in several processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from duologue.composition.engine_side import configured_pipelines as configured_pipelines
from duologue.composition.engine_side import make_engine_side
from duologue.composition.gateway_side import Ground, drained, make_gateway_side
from duologue.composition.kept import make_answers
from duologue.composition.listening import Tls as Tls
from duologue.composition.listening import why_not_listening as why_not_listening
from duologue.core.clock import Clock, SystemClock
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pools.fleet import Progress
from duologue.gateway.http.front_door import FrontDoor
from duologue.protocol.errors import ErrorCode
from duologue.sessions.manager import SessionManager
from duologue.settings import Settings
from duologue.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class App:
    """A server that runs.

    Args:
        url: Where the page is; the port is the one that was taken.
        paths: Method and path of every plain HTTP route.
        wyoming_port: The one that was taken, where the settings want one.
    """

    url: str
    tls: Tls | None
    engine: Engine
    sessions: SessionManager
    metrics: Metrics
    paths: Sequence[tuple[str, str]]
    wyoming_port: int | None = None


@asynccontextmanager
async def running_app(
    settings: Settings,
    *,
    progress: Progress | None = None,
    clock: Clock | None = None,
    stop_now: asyncio.Event | None = None,
) -> AsyncIterator[App]:
    """Start everything, in the order in which it depends on each other; stop it in reverse.

    The server listens before the models are loaded, and says so to whoever asks; a call is refused
    until they are.

    Args:
        settings: All of them.
        progress: Hears of each model that is loaded.
        clock: The time of everything.
        stop_now: Once set, calls that go on at the end are not waited for.

    Raises:
        ConfigError: The settings name something that is not there.
        EngineError: A model cannot be started.
    """
    clock = clock or SystemClock()
    side = make_engine_side(settings, clock)
    sessions = side.sessions
    gateway = make_gateway_side(
        settings,
        Ground(
            host=side.host,
            engine=side.engine,
            plugins=side.plugins,
            metrics=side.metrics,
            clock=clock,
            wheel=side.wheel,
            workers=side.workers,
            slots=side.slots,
            answers=make_answers(settings.gateway.http, clock),
            jobs=side.jobs,
            lifecycle=side.engine.lifecycle,
            looks=side.looks,
        ),
    )
    # Undone from the last to the first, each whatever becomes of the others.
    async with AsyncExitStack() as undo:
        side.undone_by(undo)
        gateway.undone_by(undo, partial(sessions.close_all, ErrorCode.SHUTTING_DOWN))
        await side.keep_checkpoints(settings.sessions, clock, undo)
        await gateway.start()
        await side.engine.start(progress)
        await side.keep_jobs(undo)
        gateway.admission.open()
        yield App(
            gateway.url,
            gateway.tls,
            side.engine,
            sessions,
            side.metrics,
            gateway.paths,
            None if gateway.wyoming is None else gateway.wyoming.port,
        )
        await _drain(
            sessions, gateway.door, settings.gateway.drain_timeout_s, stop_now or asyncio.Event()
        )


async def _drain(
    sessions: SessionManager, door: FrontDoor, timeout_s: float, stop_now: asyncio.Event
) -> None:
    """Let calls and requests that go on end by themselves, for a while."""
    sessions.accepting = False
    async with asyncio.TaskGroup() as group:
        over = group.create_task(_all_over(sessions, door, timeout_s), name="drain")
        await drained(over, stop_now)


async def _all_over(sessions: SessionManager, door: FrontDoor, timeout_s: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(sessions.wait_empty(timeout_s), name="drain-calls")
        group.create_task(door.wait_idle(timeout_s), name="drain-requests")
