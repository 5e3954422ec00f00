"""The gateway's application on a free port, with sessions but without an engine that works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from duologue.core.clock import SystemClock
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.gateway.admission import Admission, Workers
from duologue.gateway.application import make_application
from duologue.gateway.auth import Access
from duologue.gateway.catalogue import Catalogue, served_models
from duologue.gateway.http.beta_secrets import BetaSecretRoutes
from duologue.gateway.http.client_secrets import ClientSecretRoutes
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.faults import server_logger
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.models import ModelRoutes
from duologue.gateway.http.routes import Route
from duologue.gateway.http.status import StatusRoutes
from duologue.gateway.settings import NOT_KEYS, GatewaySettings
from duologue.gateway.telephony.endpoint import PhoneEndpoint
from duologue.gateway.telephony.signed import TwilioRequests
from duologue.gateway.telephony.voice import TwilioVoiceRoutes
from duologue.gateway.ws.channel import ChannelTiming
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.realtime import RealtimeEndpoint
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.local import LocalHost
from duologue.hosts.request_slots import RequestSlots, SlotsPort
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import Flight, LabelSets, Metrics
from tests.fakes.engine import FakeEngine
from tests.patience import PATIENCE_S

STARTED_AT = 1_700_000_000.9


@dataclass
class SmallServer:
    """The server, and its parts that a test looks at."""

    port: int
    sessions: SessionManager
    host: LocalHost
    admission: Admission
    realtime: RealtimeEndpoint
    access: Access
    wheel: TimerWheel
    workers: Workers
    metrics: Metrics
    flights: list[Flight]
    """Recordings of sessions that crashed."""


@asynccontextmanager
async def small_server(
    gateway: GatewaySettings | None = None,
    sessions: SessionSettings | None = None,
    *,
    plugins: Mapping[str, DuplexPlugin] | None = None,
    routes: Sequence[Route] = (),
    pipelines: tuple[str, ...] = (),
    is_loaded: bool = True,
    slots: SlotsPort | None = None,
) -> AsyncIterator[SmallServer]:
    settings = gateway or GatewaySettings()
    clock = SystemClock()
    wheel = TimerWheel(asyncio.get_running_loop().call_at)
    plugins = plugins or {"echo": EchoPlugin(), "other": EchoPlugin()}
    flights: list[Flight] = []
    metrics = Metrics(LabelSets(plugins=tuple(plugins), keys=(*settings.key_names(), *NOT_KEYS)))
    engine = FakeEngine(pipelines=pipelines)
    manager = SessionManager(
        engine,
        plugins,
        sessions or SessionSettings(),
        clock=clock,
        wheel=wheel,
        new_id=id_maker(),
        observation=Observation(
            metrics=metrics,
            kinds=recorded_kinds(),
            clock=clock,
            recorded_entries=64,
            keep=flights.append,
        ),
    )
    host = LocalHost(manager, clock, wheel, CallQueue(settings.queued_calls))
    access = Access(settings, clock, metrics)
    admission = Admission(host, lambda: server.workers)
    timing = ChannelTiming(clock, wheel, settings.heartbeat_s, settings.close_timeout_s)
    connections = OpenConnections()
    realtime = RealtimeEndpoint(host, admission, access, settings, timing, connections)
    signed = TwilioRequests(settings.telephony)
    phone = PhoneEndpoint(host, admission, access, settings, signed, timing, connections)
    catalogue = Catalogue(served_models(plugins, engine, None))
    own = [
        *StatusRoutes(host, admission, metrics).routes(),
        *ModelRoutes(catalogue, STARTED_AT).routes(),
        *ClientSecretRoutes(host, access, settings.http).routes(),
        *BetaSecretRoutes(host, access, settings.http).routes(),
        *TwilioVoiceRoutes(access, signed, settings.http).routes(),
    ]
    slots = slots or RequestSlots(settings.http.max_requests, settings.http.queued_requests)
    door = FrontDoor(access, admission, settings.http, slots)
    server = SmallServer(
        0, manager, host, admission, realtime, access, wheel, Workers(2, 2, True), metrics, flights
    )
    if is_loaded:
        admission.open()
    runner = web.AppRunner(
        make_application(realtime, phone, [*own, *routes], door, CrossOrigin(access)),
        access_log=None,
        handle_signals=False,
        logger=server_logger(),
        shutdown_timeout=0.1,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        manager.close_all("closed")
        await realtime.wait_closed(PATIENCE_S)
        await runner.cleanup()
