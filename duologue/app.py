"""The composition root: settings in, a running server out. All wiring is here.

Nothing else looks anything up globally; every part gets what it needs from here.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from duologue.artifacts.references import references_in, resolve_references
from duologue.artifacts.store import Store

# Loading the codec takes a tenth of a second: not in the middle of a call.
from duologue.codecs import opus_stream as opus_stream
from duologue.codecs.containers import AudioFileDecoder, ReadLimits
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError
from duologue.core.ids import id_maker
from duologue.core.installation import install_command
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.registry import make_plugin
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pipeline import BUILT_IN_FOLDER, Pipeline, load_pipelines, stage_keys
from duologue.engines.pools.fleet import Progress
from duologue.gateway.admin.routes import AdminRoutes
from duologue.gateway.admission import Admission, Workers
from duologue.gateway.application import make_application
from duologue.gateway.auth import Access
from duologue.gateway.catalogue import Catalogue, served_models
from duologue.gateway.engine_client import EngineClient
from duologue.gateway.http.beta_secrets import BetaSecretRoutes
from duologue.gateway.http.chat import ChatRoutes
from duologue.gateway.http.client_secrets import ClientSecretRoutes
from duologue.gateway.http.connection_watch import ConnectionWatch
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.counting import RequestCount
from duologue.gateway.http.faults import server_logger
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.models import ModelRoutes
from duologue.gateway.http.openapi import OpenApiRoutes
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.speech import SpeechRoutes
from duologue.gateway.http.status import StatusRoutes
from duologue.gateway.http.transcriptions import TranscriptionRoutes
from duologue.gateway.settings import NOT_KEYS, GatewaySettings
from duologue.gateway.telephony.endpoint import PhoneEndpoint
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.voice import TwilioVoiceRoutes
from duologue.gateway.tls import Certificate, choose_certificate, server_context
from duologue.gateway.webrtc.calls import Calls
from duologue.gateway.webrtc.routes import CallRoutes
from duologue.gateway.ws.channel import Timing
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.realtime import RealtimeEndpoint
from duologue.gateway.ws.speech_stream import SpeechStreamEndpoint
from duologue.gateway.wyoming.server import WyomingServer
from duologue.hosts.local import LocalHost
from duologue.protocol.errors import ErrorCode
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.observer import STALE_AT_SESSION, Observation
from duologue.sessions.via import DIALECTS, TRANSPORTS
from duologue.settings import Settings
from duologue.telemetry import Flight, LabelSets, LoopLagProbe, Metrics, keep_flight
from duologue.telemetry.settings import TelemetrySettings
from duologue.telemetry.tape import MAX_WAITING_BYTES, Recordings

if TYPE_CHECKING:
    from duologue.telemetry.tracing import Traces

KEEP_ALIVE_S = 75.0
"""An idle HTTP connection is dropped after so long; WebSockets have their own heartbeat."""


@dataclass(frozen=True, slots=True)
class Tls:
    """What the server shows to clients of https:// and wss://."""

    certificate: Certificate
    context: ssl.SSLContext

    def reload(self) -> None:
        """Read the certificate again; for one that was renewed.

        Raises:
            ConfigError: It cannot be used; the earlier one stays.
        """
        self.certificate.load_into(self.context)


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
    loop = asyncio.get_running_loop()
    pipelines = configured_pipelines(settings)
    plugins = {model.name: make_plugin(model.plugin, model.options) for model in settings.models}
    metrics = Metrics(_labels(settings, pipelines))
    wheel = TimerWheel(loop.call_at)
    lag = LoopLagProbe(wheel, clock, metrics.loop_lag)
    engine = Engine(pipelines, settings.engine, metrics, clock)
    recordings = _recordings(settings.telemetry)
    traces = _traces(settings.telemetry, clock)
    sessions = SessionManager(
        engine,
        plugins,
        settings.sessions,
        clock=clock,
        wheel=wheel,
        new_id=id_maker(),
        observation=Observation(
            metrics=metrics,
            kinds=recorded_kinds(),
            clock=clock,
            recorded_entries=settings.telemetry.flight_entries,
            keep=_flight_keeper(settings.telemetry, loop),
            tape=None if recordings is None else recordings.tape,
            trace=None if traces is None else traces.turn,
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
        *ModelRoutes(services.catalogue, clock.wall_time()).routes(),
        *ClientSecretRoutes(host, access, gateway.http).routes(),
        *BetaSecretRoutes(host, access, gateway.http).routes(),
        *TwilioVoiceRoutes(access, signed, gateway.http).routes(),
        *SpeechRoutes(services).routes(),
        *ChatRoutes(services, files).routes(),
        *TranscriptionRoutes(services, files).routes(),
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
        admission.open()
        yield App(
            _url(gateway.host, runner, tls),
            tls,
            engine,
            sessions,
            metrics,
            paths,
            None if wyoming is None else wyoming.port,
        )
        await _drain(sessions, door, gateway.drain_timeout_s, stop_now or asyncio.Event())


def configured_pipelines(settings: Settings) -> dict[str, Pipeline]:
    """Return the pipelines that the settings name, with the paths of their weights.

    Raises:
        ConfigError: A pipeline, or something in it, is unknown.
        ArtifactMissing: Weights are not in the cache; the message says how to get them.
    """
    shipped = [BUILT_IN_FOLDER / f"{name}.yaml" for name in settings.engine.pipelines]
    store = Store(settings.artifacts)
    pipelines = load_pipelines([*shipped, *settings.engine.pipeline_files])
    stages = [stage for pipeline in pipelines.values() for stage in pipeline.stages]
    store.check({id_ for stage in stages for id_ in references_in(stage.settings)})
    return {name: _with_weights(pipeline, store) for name, pipeline in pipelines.items()}


def _with_weights(pipeline: Pipeline, store: Store) -> Pipeline:
    stages = tuple(
        msgspec.structs.replace(stage, settings=resolve_references(stage.settings, store))
        for stage in pipeline.stages
    )
    return msgspec.structs.replace(pipeline, stages=stages)


def _tls(settings: Settings, wall_time: float) -> Tls | None:
    gateway = settings.gateway
    certificate = choose_certificate(
        gateway.tls,
        settings.artifacts.cache_dir / "tls",
        (socket.gethostname(), gateway.host),
        wall_time,
    )
    return None if certificate is None else Tls(certificate, server_context(certificate))


async def _listen(runner: web.AppRunner, gateway: GatewaySettings, tls: Tls | None) -> None:
    context = None if tls is None else tls.context
    try:
        await web.TCPSite(
            runner, gateway.host, gateway.port, backlog=1024, ssl_context=context
        ).start()
    except OSError as exc:
        raise ConfigError(why_not_listening(gateway, exc)) from exc


def why_not_listening(gateway: GatewaySettings, exc: OSError) -> str:
    """Return what to tell whoever starts the server, and what to change."""
    place = f"cannot listen on {gateway.host}:{gateway.port}"
    match exc.errno:
        case errno.EADDRINUSE:
            return (
                f"{place}: another program does, perhaps a Duologue. Stop it, or choose another "
                "port with --gateway.port, or 0 for any free one."
            )
        case errno.EACCES:
            return f"{place}: ports below 1024 need rights. Choose another with --gateway.port."
        case _:
            return (
                f"{place}: this is not an address of this machine. --gateway.host is 127.0.0.1 for "
                "this machine alone, 0.0.0.0 for its networks."
            )


async def _drain(
    sessions: SessionManager, door: FrontDoor, timeout_s: float, stop_now: asyncio.Event
) -> None:
    """Let calls and requests that go on end by themselves, for a while."""
    sessions.accepting = False
    async with asyncio.TaskGroup() as group:
        over = group.create_task(_all_over(sessions, door, timeout_s), name="drain")
        hurry = group.create_task(stop_now.wait(), name="stop-now")
        await asyncio.wait((over, hurry), return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        hurry.cancel()


async def _all_over(sessions: SessionManager, door: FrontDoor, timeout_s: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(sessions.wait_empty(timeout_s), name="drain-calls")
        group.create_task(door.wait_idle(timeout_s), name="drain-requests")


def _flight_keeper(
    telemetry: TelemetrySettings, loop: asyncio.AbstractEventLoop
) -> Callable[[Flight], None]:
    folder = telemetry.flight_folder
    if folder is None:
        return lambda _flight: None
    write = partial(keep_flight, folder=folder, max_files=telemetry.flight_files)

    def keep(flight: Flight) -> None:
        loop.run_in_executor(None, write, flight)

    return keep


def _note_fills(metrics: Metrics, door: FrontDoor, recordings: Recordings | None) -> None:
    """Publish how many tasks there are, and how full the bounds that nobody else looks after."""
    metrics.loop_tasks.set(len(asyncio.all_tasks()))
    metrics.bound_fill["http_requests"].set(door.fill)
    waiting_bytes = 0 if recordings is None else recordings.waiting_bytes
    metrics.held_bytes["recordings"].set(waiting_bytes)
    metrics.bound_fill["recordings"].set(waiting_bytes / MAX_WAITING_BYTES)


def _recordings(telemetry: TelemetrySettings) -> Recordings | None:
    if telemetry.record == "off":
        return None
    return Recordings(
        telemetry.record_folder,
        max_files=telemetry.record_files,
        max_bytes=telemetry.record_bytes,
        content=telemetry.record == "content",
    )


def _traces(telemetry: TelemetrySettings, clock: Clock) -> Traces | None:
    if not telemetry.traces:
        return None
    try:
        from duologue.telemetry.tracing import Traces
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"telemetry.traces needs the package '{exc.name}', which is not installed. "
            f"Install it with: {install_command('duologue[otel]')}"
        ) from exc
    return Traces(clock)


def _labels(settings: Settings, pipelines: dict[str, Pipeline]) -> LabelSets:
    return LabelSets(
        plugins=tuple(model.name for model in settings.models),
        stages=(*stage_keys(pipelines.values()), STALE_AT_SESSION),
        close_reasons=(*ErrorCode, "client_gone", "closed"),
        mailboxes=("session",),
        transports=TRANSPORTS,
        dialects=DIALECTS,
        keys=(*settings.gateway.key_names(), *NOT_KEYS),
    )


def _workers(engine: Engine) -> Workers:
    stages = engine.stats().stages
    return Workers(
        ready=sum(stage.ready for stage in stages),
        total=sum(stage.replicas for stage in stages),
        every_stage=all(stage.ready for stage in stages),
    )


def _url(host: str, runner: web.AppRunner, tls: Tls | None) -> str:
    port = runner.addresses[0][1]
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::1", "::") else host
    return f"{'http' if tls is None else 'https'}://{shown}:{port}"
