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
from duologue.composition.listening import Tls as Tls
from duologue.composition.listening import why_not_listening as why_not_listening
from duologue.core.clock import Clock, SystemClock
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pools.fleet import Progress
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.media import MediaEndpoints
from duologue.gateway.http.models import ModelRoutes
from duologue.gateway.http.openapi import OpenApiRoutes
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.speech import SpeechRoutes
from duologue.gateway.http.status import StatusRoutes
from duologue.gateway.http.transcriptions import TranscriptionRoutes
from duologue.gateway.telephony.endpoint import PhoneEndpoint
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.voice import TwilioVoiceRoutes
from duologue.gateway.webrtc.calls import Calls
from duologue.gateway.webrtc.routes import CallRoutes
from duologue.gateway.ws.channel import Timing
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.realtime import RealtimeEndpoint
from duologue.gateway.ws.speech_stream import SpeechStreamEndpoint
from duologue.gateway.wyoming.server import WyomingServer
from duologue.hosts.local import LocalHost
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
            looks=side.looks,
        ),
    )
    host = LocalHost(sessions, clock, wheel)
    gateway = settings.gateway
    tls = _tls(settings, clock.wall_time())
    access = Access(gateway, clock, metrics)
    admission = Admission(host, lambda: _workers(engine))
    timing = Timing(clock, wheel, gateway.heartbeat_s, gateway.close_timeout_s)
    connections = OpenConnections()
    calls = Calls(host, gateway.webrtc, clock, wheel, id_maker())
    realtime = RealtimeEndpoint(
        host, admission, access, gateway, timing, connections, calls.observe
    )
    signed = TwilioRequests(gateway.telephony)
    phone = PhoneEndpoint(host, admission, access, gateway, signed, timing, connections)
    services = HttpServices(
        EngineClient(
            engine,
            clock,
            id_maker(),
            gateway.http.request_timeout_s,
            gateway.http.silence_timeout_s,
        ),
        Catalogue(
            served_models(
                plugins,
                engine,
                settings.sessions.listening.asr,
                languages=settings.sessions.listening.languages,
                translates=settings.sessions.listening.translates,
            ),
            gateway.http.default_model_for,
        ),
        gateway.http,
        clock,
        id_maker(),
    )
    files = AudioFileDecoder(
        ReadLimits(max_bytes=gateway.http.max_audio_file_bytes, max_s=gateway.http.max_audio_s)
    )
    speech_streams = SpeechStreamEndpoint(services, admission)
    media = MediaEndpoints(
        services,
        engine,
        {name: each.offer for name, each in pipelines.items() if each.offer is not None},
        settings.jobs,
        settings.artifacts.cache_dir / "jobs",
    )
    wyoming = (
        None
        if gateway.wyoming_port is None
        else WyomingServer(services, admission, gateway.host, gateway.wyoming_port)
    )
    door = FrontDoor(access, admission, gateway.http)
    looks = (
        sessions.note_fills,
        engine.note_fills,
        partial(_note_fills, metrics, door, recordings),
    )
    routes = [
        *StatusRoutes(host, admission, metrics, looks).routes(),
        *ClientSecretRoutes(host, access, gateway.http).routes(),
        *BetaSecretRoutes(host, access, gateway.http).routes(),
        *ModelRoutes(services.catalogue, clock.wall_time(), media.models).routes(),
        *TwilioVoiceRoutes(access, signed, gateway.http).routes(),
        *SpeechRoutes(services).routes(),
        *ChatRoutes(services, files).routes(),
        *TranscriptionRoutes(services, files).routes(),
        *media.routes(),
        *speech_streams.routes(),
        *CallRoutes(calls, admission, access, gateway.http).routes(),
    ]
    routes += OpenApiRoutes(routes).routes()
    routes += AdminRoutes(host, admission, access, gateway).routes()
    paths = [(route.method, route.path) for route in routes]
    application = make_application(realtime, phone, routes, door, CrossOrigin(access))
    RequestCount(metrics).install(application)
    runner = web.AppRunner(
        application,
        access_log=None,
        handle_signals=False,
        keepalive_timeout=KEEP_ALIVE_S,
        logger=server_logger(),
        shutdown_timeout=gateway.close_timeout_s,
    )
    watch = ConnectionWatch(runner, clock, wheel, gateway.http)
    # Undone from the last to the first, each whatever becomes of the others.
    async with AsyncExitStack() as undo:
        side.undone_by(undo)
        gateway.undone_by(undo, partial(sessions.close_all, ErrorCode.SHUTTING_DOWN))
        await gateway.start()
        await side.engine.start(progress)
        gateway.admission.open()
        if traces is not None:
            undo.push_async_callback(asyncio.to_thread, traces.close)
        if recordings is not None:
            undo.push_async_callback(asyncio.to_thread, recordings.close)
        undo.push_async_callback(engine.stop)
        undo.push_async_callback(runner.cleanup)
        # Before the runner, which no longer reads: the answers to our goodbyes are on their way.
        undo.push_async_callback(connections.wait_closed, 2 * gateway.close_timeout_s)
        undo.push_async_callback(speech_streams.close_all)
        undo.push_async_callback(calls.stop)
        if wyoming is not None:
            undo.push_async_callback(wyoming.close)
        undo.callback(sessions.close_all, ErrorCode.SHUTTING_DOWN)
        undo.callback(lag.stop)
        undo.callback(watch.stop)
        await runner.setup()
        await calls.start()
        await _listen(runner, gateway, tls)
        if wyoming is not None:
            await wyoming.start()
        lag.start()
        watch.start()
        await engine.start(progress)
        await undo.enter_async_context(media.running())
        admission.open()
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
