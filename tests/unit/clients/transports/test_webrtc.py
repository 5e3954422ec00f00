"""The transport by itself against a gateway: real ICE, DTLS and SRTP over the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aioice.ice
import pytest
from aiohttp import web

from duologue.app import App, running_app
from duologue.clients.errors import CallEnded, NotRealtimeServer, ServerUnreachable
from duologue.clients.track import TrackAudio
from duologue.clients.transports.opening import calls_url
from duologue.clients.transports.webrtc import WebRtcTransport
from duologue.core.errors import AuthError
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio
from duologue.protocol.events import AudioCleared, SessionCreated
from duologue.sessions.settings import SessionSettings
from tests.fakes.small_gateway import API_KEY, small_settings
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda **_: ["127.0.0.1"])


@asynccontextmanager
async def served(*keys: str, model: str | None = None) -> AsyncIterator[tuple[App, str]]:
    settings = small_settings(api_keys=keys, sessions=SessionSettings())
    door = settings.gateway.model_copy(update={"webrtc": WebRtcSettings(bind_address="127.0.0.1")})
    async with running_app(settings.model_copy(update={"gateway": door})) as app:
        yield app, calls_url(app.url, model)


async def test_commands_events_and_speech_cross() -> None:
    async with served(model="echo") as (app, url):
        transport = await WebRtcTransport.open(url)
        greeting = await transport.receive()
        assert isinstance(greeting.event, SessionCreated)
        assert greeting.seq == 1
        await transport.send(ClearAudio())
        # The track has begun to send silence, which the model may already be answering.
        while not isinstance((await transport.receive()).event, AudioCleared):
            pass
        for _ in range(10):
            await transport.send(AppendAudio(audio=b"\x00\x10" * 2400))
        while not isinstance((await transport.receive()).event, TrackAudio):
            pass
        await transport.close()
        await transport.close()
        with pytest.raises(CallEnded) as ended:
            await to_the_end(transport)
        assert ended.value.is_normal
        with pytest.raises(CallEnded):
            await transport.send(ClearAudio())
        await app.sessions.wait_empty(PATIENCE_S)


async def to_the_end(transport: WebRtcTransport) -> None:
    while True:
        await transport.receive()


async def test_a_server_that_hangs_up_ends_both_directions() -> None:
    async with served() as (app, url):
        transport = await WebRtcTransport.open(url)
        await transport.receive()
        app.sessions.close_all("server_shutting_down")
        with pytest.raises(CallEnded):
            await to_the_end(transport)
        await transport.close()


async def test_who_may_not_call_is_told_so() -> None:
    async with served(API_KEY) as (_, url):
        with pytest.raises(AuthError):
            await WebRtcTransport.open(url)
        transport = await WebRtcTransport.open(url, api_key=API_KEY)
        await transport.close()


Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def page(handler: Page) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/calls", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/calls"
    finally:
        await runner.cleanup()


async def test_what_is_no_server_of_calls_is_told_from_one_that_does_not_answer() -> None:
    async def nonsense(_: web.Request) -> web.Response:
        return web.Response(status=201, text="hello")

    async def absent(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "install it"}}, status=501)

    awake = asyncio.Event()

    async def asleep(_: web.Request) -> web.Response:
        await awake.wait()
        return web.Response()

    async with page(nonsense) as url:
        with pytest.raises(NotRealtimeServer, match="no SDP answer"):
            await WebRtcTransport.open(url)
    async with page(absent) as url:
        with pytest.raises(NotRealtimeServer, match=r"501 instead of answering .*: install it"):
            await WebRtcTransport.open(url)
    async with page(asleep) as url:
        with pytest.raises(ServerUnreachable, match=r"within 0\.2 s"):
            await WebRtcTransport.open(url, open_timeout_s=0.2)
        awake.set()
    with pytest.raises(ServerUnreachable, match="duologue serve"):
        await WebRtcTransport.open("http://127.0.0.1:1/calls")
