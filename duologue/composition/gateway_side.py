"""A gateway, made from the settings and what stands behind it, wherever that is.

This module must not know whether the session host is in the same process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from aiohttp import web

# Loading the codec takes a tenth of a second: not in the middle of a call.
from duologue.codecs import opus_stream as opus_stream
from duologue.codecs.containers import AudioFileDecoder, ReadLimits
from duologue.composition.engine_side import named_pipelines
from duologue.composition.listening import Tls, chosen_tls, listen, url_of
from duologue.core.clock import Clock
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.engines.lifecycle_port import LifecyclePort
from duologue.engines.ports import EnginePort
from duologue.gateway.admin.key import AdminKey
from duologue.gateway.admin.routes import AdminRoutes
from duologue.gateway.admin.stages import StageRoutes
from duologue.gateway.admission import Admission, Workers
from duologue.gateway.application import make_application
from duologue.gateway.auth import Access, SharedCount
from duologue.gateway.catalogue import Catalogue, served_models, speaking_models
from duologue.gateway.http.beta_secrets import BetaSecretRoutes
from duologue.gateway.http.chat import ChatRoutes
from duologue.gateway.http.client_secrets import ClientSecretRoutes
from duologue.gateway.http.connection_watch import ConnectionWatch
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.counting import RequestCount
from duologue.gateway.http.faults import server_logger
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.media import MediaEndpoints
from duologue.gateway.http.models import ModelRoutes
from duologue.gateway.http.openapi import OpenApiRoutes
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.speech import SpeechRoutes
from duologue.gateway.http.status import FiguresPage, StatusRoutes
from duologue.gateway.http.transcriptions import TranscriptionRoutes
from duologue.gateway.picture_check import with_picture_check
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.telephony.endpoint import PhoneEndpoint
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.voice import TwilioVoiceRoutes
from duologue.gateway.webrtc.calls import Calls
from duologue.gateway.webrtc.routes import CallRoutes
from duologue.gateway.ws.channel import ChannelTiming
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.realtime import RealtimeEndpoint
from duologue.gateway.ws.robot_stream import RobotStreamEndpoint
from duologue.gateway.ws.speech_stream import SpeechStreamEndpoint
from duologue.gateway.wyoming.server import WyomingServer
from duologue.hosts.answers import AnswersPort
from duologue.hosts.port import HostPort
from duologue.hosts.request_slots import SlotsPort
from duologue.jobs.port import JobPort
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.settings import Settings
from duologue.telemetry import LoopLagProbe, Metrics
from duologue.telemetry.looks import Look

KEEP_ALIVE_S = 75.0
"""An idle HTTP connection is dropped after so long; WebSockets have their own heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a gateway stands on.

    Args:
        workers: Takes a look at the engine.
        slots: For plain requests.
        answers: That later requests refer to.
        jobs: Takes work that is fetched later; ``None``: no model does any.
        lifecycle: Gives orders to stages.
        looks: Publish what nobody writes between scrapes.
        shared: Counts requests for several gateways; ``None``: this is the only one.
        page: Writes the figures of all processes; ``None``: there is one.
        is_first: Of several gateways, the one that also serves what only one can.
    """

    host: HostPort
    engine: EnginePort
    plugins: Mapping[str, DuplexPlugin]
    metrics: Metrics
    clock: Clock
    wheel: TimerWheel
    workers: Callable[[], Workers]
    slots: SlotsPort
    answers: AnswersPort
    jobs: JobPort | None = None
    lifecycle: LifecyclePort | None = None
    looks: Sequence[Look] = ()
    shared: SharedCount | None = None
    page: FiguresPage | None = None
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class GatewaySide:
    """The parts that are started and stopped."""

    settings: GatewaySettings
    ground: Ground
    tls: Tls | None
    runner: web.AppRunner
    admission: Admission
    door: FrontDoor
    calls: Calls
    realtime: RealtimeEndpoint
    speech_streams: SpeechStreamEndpoint
    robots: RobotStreamEndpoint
    media: MediaEndpoints
    wyoming: WyomingServer | None
    watch: ConnectionWatch
    lag: LoopLagProbe
    looks: Sequence[Look]
    paths: Sequence[tuple[str, str]]

    async def start(self, *, shared_port: bool = False) -> None:
        """Listen.

        Args:
            shared_port: Other processes listen on the same one.

        Raises:
            ConfigError: The address cannot be had.
        """
        await self.runner.setup()
        await self.calls.start()
        await listen(self.runner, self.settings, self.tls, shared=shared_port)
        if self.wyoming is not None:
            await self.wyoming.start()
        self.lag.start()
        self.watch.start()

    def undone_by(self, undo: AsyncExitStack, end_sessions: Callable[[], object]) -> None:
        """Let ``undo`` end the sessions, then all connections, and then stop listening."""
        settings = self.settings
        undo.push_async_callback(self.runner.cleanup)
        # Before the runner, which no longer reads: the answers to our goodbyes are on their way.
        undo.push_async_callback(self.realtime.wait_closed, 2 * settings.close_timeout_s)
        undo.push_async_callback(self._close_sockets, settings.close_timeout_s)
        undo.push_async_callback(self.calls.stop)
        if self.wyoming is not None:
            undo.push_async_callback(self.wyoming.close)
        undo.callback(end_sessions)
        undo.callback(self.lag.stop)
        undo.callback(self.watch.stop)

    async def _close_sockets(self, limit_s: float) -> None:
        """End the WebSockets that hold no session."""
        async with asyncio.TaskGroup() as group:
            for route in (self.speech_streams, self.robots, self.media):
                group.create_task(route.close_all(limit_s), name="close-sockets")

    async def stop_listening(self) -> None:
        """Take no further connections; those that are open go on."""
        for site in list(self.runner.sites):
            await site.stop()

    @property
    def url(self) -> str:
        """Where the page is; the port is the one that was taken."""
        return url_of(self.settings.host, self.runner, self.tls)


def make_gateway_side(settings: Settings, ground: Ground) -> GatewaySide:
    """Make the parts. Nothing of them runs yet.

    Raises:
        ConfigError: The settings cannot be used.
    """
    clock, wheel, metrics, host = ground.clock, ground.wheel, ground.metrics, ground.host
    plugins, engine = ground.plugins, ground.engine
    gateway = settings.gateway
    tls = chosen_tls(settings, clock.wall_time(), metrics.tls_handshakes)
    access = Access(gateway, clock, metrics, ground.shared)
    admission = Admission(host, ground.workers)
    timing = ChannelTiming(clock, wheel, gateway.heartbeat_s, gateway.close_timeout_s)
    connections = OpenConnections()
    checked = with_picture_check(REALTIME_JSON, gateway.http.max_picture_pixels)
    calls = Calls(host, gateway.webrtc, clock, wheel, id_maker(), checked)
    realtime = RealtimeEndpoint(
        host, admission, access, gateway, timing, connections, calls.observe
    )
    signed = TwilioRequests(gateway.telephony)
    phone = PhoneEndpoint(host, admission, access, gateway, signed, timing, connections)
    pipelines = named_pipelines(settings)
    speaking = {name: each.speech for name, each in pipelines.items() if each.speech is not None}
    services = HttpServices(
        RouteRequests(
            engine,
            clock,
            id_maker(),
            gateway.http.request_timeout_s,
            gateway.http.silence_timeout_s,
        ),
        Catalogue(
            [
                *served_models(
                    plugins,
                    engine,
                    settings.sessions.listening.asr,
                    languages=settings.sessions.listening.languages,
                    translates=settings.sessions.listening.translates,
                ),
                *speaking_models(speaking, engine),
            ],
            gateway.http.default_model_for,
        ),
        gateway.http,
        clock,
        id_maker(),
        metrics,
    )
    media = MediaEndpoints(
        services,
        engine,
        {
            name: pipeline.offer
            for name, pipeline in pipelines.items()
            if pipeline.offer is not None
        },
        ground.jobs,
        ground.answers,
    )
    files = AudioFileDecoder(
        ReadLimits(max_bytes=gateway.http.max_audio_file_bytes, max_s=gateway.http.max_audio_s)
    )
    speech_streams = SpeechStreamEndpoint(services)
    policies = {name: each.policy for name, each in pipelines.items() if each.policy is not None}
    robots = RobotStreamEndpoint(
        services.engine,
        policies,
        gateway.robot,
        clock,
        metrics,
    )
    door = FrontDoor(access, admission, gateway.http, ground.slots)
    looks: list[Look] = [*ground.looks, partial(_note_tasks, metrics)]
    wyoming = (
        None
        if gateway.wyoming_port is None or not ground.is_first
        else WyomingServer(services, admission, gateway.host, gateway.wyoming_port)
    )
    routes = [
        *StatusRoutes(host, admission, metrics, looks, ground.page).routes(),
        *ModelRoutes(services.catalogue, clock.wall_time(), media.models, tuple(policies)).routes(),
        *ClientSecretRoutes(host, access, gateway.http).routes(),
        *BetaSecretRoutes(host, access, gateway.http).routes(),
        *TwilioVoiceRoutes(access, signed, gateway.http).routes(),
        *SpeechRoutes(services).routes(),
        *ChatRoutes(services, files, ground.answers).routes(),
        *TranscriptionRoutes(services, files).routes(),
        *media.routes(),
        *speech_streams.routes(),
        *robots.routes(),
        *CallRoutes(calls, admission, access, gateway.http).routes(),
    ]
    routes += OpenApiRoutes(routes).routes()
    admin_key = AdminKey(access, gateway)
    routes += AdminRoutes(host, admission, admin_key).routes()
    if ground.lifecycle is not None:
        routes += StageRoutes(ground.lifecycle, admin_key, gateway.http).routes()
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
    return GatewaySide(
        settings=gateway,
        ground=ground,
        tls=tls,
        runner=runner,
        admission=admission,
        door=door,
        calls=calls,
        realtime=realtime,
        speech_streams=speech_streams,
        robots=robots,
        media=media,
        wyoming=wyoming,
        watch=watch,
        looks=looks,
        lag=LoopLagProbe(wheel, clock, metrics.loop_lag),
        paths=paths,
    )


def _note_tasks(metrics: Metrics) -> None:
    metrics.loop_tasks.set(len(asyncio.all_tasks()))


async def drained(idle: asyncio.Future[None] | asyncio.Task[None], stop_now: asyncio.Event) -> None:
    """Wait for what ends by itself, or until somebody is in a hurry."""
    async with asyncio.TaskGroup() as group:
        hurry = group.create_task(stop_now.wait(), name="stop-now")
        await asyncio.wait((idle, hurry), return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        hurry.cancel()
