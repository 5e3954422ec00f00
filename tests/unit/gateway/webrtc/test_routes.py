from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from duologue.core.clock import SystemClock
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.gateway.errors import errors_in_json
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.routes import add_routes
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.calls import Calls
from duologue.gateway.webrtc.routes import CALLS_PATH, CallRoutes
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.hosts.request_slots import RequestSlots
from tests.fakes.peer import ANSWER, FakeBackend
from tests.unit.gateway.small_server import SmallServer, small_server
from tests.unit.gateway.webrtc.offers import CHROMIUM

SDP = "application/sdp"


class Scene:
    """A server with these routes alone, whose peers are fakes."""

    def __init__(self, server: SmallServer, url: str, http: aiohttp.ClientSession) -> None:
        self.server = server
        self.library = FakeBackend()
        self.url = url
        self.http = http

    async def post(
        self, path: str, data: Any = None, **headers: str
    ) -> tuple[int, aiohttp.ClientResponse, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(self.url + path, data=data, headers=named) as response:
            return response.status, response, await response.text()

    async def offer(self, sdp: str = CHROMIUM, **headers: str) -> tuple[int, str]:
        status, _, text = await self.post(CALLS_PATH, sdp, Content_Type=SDP, **headers)
        return status, text


@asynccontextmanager
async def scene(gateway: GatewaySettings | None = None) -> AsyncIterator[Scene]:
    settings = gateway or GatewaySettings()
    async with small_server(settings) as server, aiohttp.ClientSession() as http:
        wheel = TimerWheel(asyncio.get_running_loop().call_at)
        calls = Calls(
            server.host,
            WebRtcSettings(backend="aiortc"),
            SystemClock(),
            wheel,
            id_maker(random.Random(0)),
        )
        routes = CallRoutes(calls, server.admission, server.access, settings.http).routes()
        slots = RequestSlots(settings.http.max_requests, 0)
        door = FrontDoor(server.access, server.admission, settings.http, slots)
        app = web.Application(middlewares=[errors_in_json])
        add_routes(app.router, [(route, door.before(route)) for route in routes])
        CrossOrigin(server.access).install(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await calls.start()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        here = Scene(server, f"http://127.0.0.1:{runner.addresses[0][1]}", http)
        calls._backend = here.library.backend
        try:
            yield here
        finally:
            await calls.stop()
            await runner.cleanup()


def form(sdp: str | None = CHROMIUM, session: str | None = None) -> aiohttp.FormData:
    """As the official SDK for Python sends it: parts with a type and without a file name."""
    data = aiohttp.FormData()
    if sdp is not None:
        data.add_field("sdp", sdp, content_type=SDP)
    if session is not None:
        data.add_field("session", session, content_type="application/json")
    data.add_field("other", "ignored", content_type="text/plain")
    return data


async def test_an_offer_is_answered_with_where_the_call_is() -> None:
    async with scene() as here:
        status, response, text = await here.post(
            f"{CALLS_PATH}?model=other", CHROMIUM, Content_Type=SDP
        )
        assert (status, text) == (201, ANSWER)
        assert response.content_type == SDP
        location = response.headers["Location"]
        assert location.startswith(f"{CALLS_PATH}/rtc_")
        assert (await here.post(f"{location}/hangup"))[0] == 200
        assert (await here.post(f"{location}/hangup"))[0] == 404


async def test_a_form_may_carry_the_session() -> None:
    async with scene() as here:
        session = '{"type":"realtime","model":"other","instructions":"Be kind."}'
        status, _, _ = await here.post(CALLS_PATH, form(session=session))
        assert status == 201
        listener = here.library.peer.listener
        listener.on_connected()
        listener.on_channel_open()
        (created,) = here.library.peer.of("session.created")
        assert created["session"]["instructions"] == "Be kind."
        assert created["session"]["model"] == "other"


async def test_parts_that_came_as_files_will_do() -> None:
    data = aiohttp.FormData()
    data.add_field("sdp", CHROMIUM, content_type=SDP, filename="offer.sdp")
    async with scene() as here:
        assert (await here.post(CALLS_PATH, data))[0] == 201


async def test_a_page_may_read_where_its_call_is() -> None:
    gateway = GatewaySettings(allowed_origins=("https://example.org",))
    async with scene(gateway) as here:
        _, response, _ = await here.post(
            CALLS_PATH, CHROMIUM, Content_Type=SDP, Origin="https://example.org"
        )
        assert "Location" in response.headers["Access-Control-Expose-Headers"]
        status, _ = await here.offer(Origin="https://elsewhere.org")
        assert status == 403


@pytest.mark.parametrize(
    ("data", "content_type", "status", "code", "param"),
    [
        ("garbage", SDP, 400, "invalid_value", "sdp"),
        ("", SDP, 400, "invalid_value", "sdp"),
        (b"v=0\xff\xfe", SDP, 400, "invalid_value", "sdp"),
        ("v=0\r\n" + "x" * 70_000, SDP, 413, "limit_exceeded", "sdp"),
        (CHROMIUM.replace("m=audio", "m=video"), SDP, 400, "invalid_value", "sdp"),
        (CHROMIUM.replace("111 63 9 0 8 13 110 126", "9"), SDP, 400, "unsupported", "sdp"),
        ('{"sdp":"v=0"}', "application/json", 415, "unsupported_media_type", None),
        (form(None), None, 400, "missing_required_parameter", "sdp"),
        (form(session="nonsense"), None, 400, "invalid_json", None),
        (form(session='{"audio":7}'), None, 400, "invalid_value", "session.audio"),
        ("no form", "multipart/form-data", 400, "invalid_request", None),
    ],
)
async def test_c71_what_cannot_be_taken_is_refused_in_json(
    data: Any, content_type: str | None, status: int, code: str, param: str | None
) -> None:
    async with scene() as here:
        headers = {} if content_type is None else {"Content_Type": content_type}
        given, response, _ = await here.post(CALLS_PATH, data, **headers)
        error = (await response.json())["error"]
        assert (given, error["code"]) == (status, code), error
        if param is not None:
            assert error["param"] == param
        assert len(here.server.sessions) == 0


async def test_what_only_phone_calls_can_do_is_refused() -> None:
    async with scene() as here:
        for action in ("accept", "reject", "refer"):
            status, response, _ = await here.post(f"{CALLS_PATH}/rtc_1/{action}")
            assert status == 400
            assert (await response.json())["error"]["code"] == "unsupported"


async def test_keys_are_checked_first() -> None:
    gateway = GatewaySettings(api_keys=("sesame",))  # type: ignore[arg-type]
    async with scene(gateway) as here:
        assert (await here.offer("garbage"))[0] == 401
        assert (await here.post(f"{CALLS_PATH}/rtc_1/hangup"))[0] == 401
        assert (await here.post(f"{CALLS_PATH}/rtc_1/refer"))[0] == 401
        assert (await here.offer(Authorization="Bearer sesame"))[0] == 201


async def test_mutated_offers_are_answered_or_refused_and_never_a_fault_of_ours() -> None:
    chance = random.Random(71)
    async with scene() as here:
        for _ in range(300):
            lines = CHROMIUM.split("\r\n")
            for _ in range(chance.randint(1, 5)):
                at = chance.randrange(len(lines))
                line = lines[at]
                cut = chance.randint(0, len(line))
                lines[at] = line[:cut] + chr(chance.randrange(0, 0x3000)) * chance.randint(0, 3)
            status, text = await here.offer("\r\n".join(lines))
            assert status in (201, 400, 413), text
            if status == 201:
                for peer in here.library.peers:
                    peer.listener.on_gone("closed")
        assert len(here.server.sessions) == 0
