"""C51 over WebRTC: a new offer goes on with the session of a call whose connection is lost."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duologue.app import running_app
from duologue.clients import DuplexClient, Reconnected, ReconnectPolicy
from duologue.clients.transports.webrtc import WebRtcTransport
from duologue.codecs.opus import OpusDecoder
from duologue.core.clock import SystemClock
from duologue.core.errors import ClientError
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.gateway.auth import Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.call import Call
from duologue.gateway.webrtc.calls import Calls
from duologue.gateway.webrtc.offer import read_offer
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.hosts.port import Return
from duologue.protocol.commands import CreateItem
from duologue.protocol.items import InputText, MessageItem
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.settings import SessionSettings
from tests.fakes.peer import FakeBackend, FakePeer
from tests.fakes.small_gateway import small_settings
from tests.patience import PATIENCE_S, until
from tests.unit.gateway.small_server import SmallServer, small_server
from tests.unit.gateway.webrtc.offers import CHROMIUM

FRAME = 480
FRAMES = 40


class Scene:
    """Calls on a server whose peers are fakes; the model is an echo."""

    def __init__(self, server: SmallServer, library: FakeBackend, calls: Calls) -> None:
        self.server = server
        self.library = library
        self.calls = calls
        self._offers = 0

    async def open(self, back: Return | None = None, owner: Owner = ANYBODY) -> FakePeer:
        self._offers += 1
        offer = read_offer(CHROMIUM.replace("yDKz", f"y{self._offers:03d}"))
        await self.calls.open(offer, None, BoundSession(), Caller(owner), resumable=True, back=back)
        self.call.on_connected()
        self.call.on_channel_open()
        return self.library.peer

    @property
    def call(self) -> Call:
        (*_, (latest, _owner)) = self.calls._calls.values()
        return latest

    async def until_waiting(self, calls: int = 0) -> None:
        await until(lambda: len(self.calls) <= calls)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    library = FakeBackend()
    async with small_server() as server:
        calls = Calls(
            server.host,
            WebRtcSettings(backend="aiortc"),
            SystemClock(),
            TimerWheel(asyncio.get_running_loop().call_at),
            id_maker(),
        )
        await calls.start()
        calls._backend = library.backend
        try:
            yield Scene(server, library, calls)
        finally:
            await calls.stop()


def place(peer: FakePeer) -> Return:
    created = peer.of("session.created")[-1]
    return Return(
        session_id=created["session"]["id"], resume_token=created["resume_token"], owner=ANYBODY
    )


def sound(amplitude: int) -> bytes:
    return struct.pack(f"<{FRAME}h", *([amplitude, -amplitude] * (FRAME // 2)))


async def heard(peer: FakePeer, frames: int) -> int:
    """Wait until so many frames were loud; returns how many were."""
    decoder = OpusDecoder(24_000)
    seen = loud = 0

    def is_heard() -> bool:
        nonlocal seen, loud
        for payload, _ in peer.audio[seen:]:
            loud += max(map(abs, memoryview(decoder.decode(payload)).cast("h"))) > 1000
        seen = len(peer.audio)
        return loud >= frames

    await until(is_heard)
    return loud


@pytest.mark.parametrize("notices", [True, False], ids=["noticed", "not noticed"])
async def test_what_was_not_played_is_played_by_the_next_call(notices: bool) -> None:
    async with scene() as here:
        peer = await here.open()
        where = place(peer)
        for _ in range(FRAMES):
            here.call.on_audio(sound(8000))
        first = await heard(peer, 5)
        lost = here.call
        if notices:
            lost.on_gone("failed")
            await here.until_waiting()
            assert here.server.metrics.sessions_detached.value == 1
        again = await here.open(where)
        created = again.of("session.created")[-1]
        assert created["session"]["id"] == where.session_id
        assert created["resume_token"] != where.resume_token
        assert created["attachment_generation"] == 2
        if not notices:
            await here.until_waiting(calls=1)
        assert len(here.server.sessions) == 1
        # The echo says nothing of the first piece, which makes it begin.
        rest = await heard(again, FRAMES - 2 - len(loud_frames(peer)))
        assert first <= len(loud_frames(peer))
        assert rest + len(loud_frames(peer)) in (FRAMES - 2, FRAMES - 1, FRAMES)
        assert again.of("output_audio_buffer.started")
        before = len(peer.audio)
        here.call.on_audio(sound(8000))
        assert len(peer.audio) == before
    assert len(here.server.sessions) == 0


def loud_frames(peer: FakePeer) -> list[int]:
    decoder = OpusDecoder(24_000)
    peaks = [
        max(map(abs, memoryview(decoder.decode(payload)).cast("h"))) for payload, _ in peer.audio
    ]
    return [peak for peak in peaks if peak > 1000]


async def test_a_stranger_gets_nobody_elses_call() -> None:
    async with scene() as here:
        where = place(await here.open())
        here.call.on_gone("failed")
        await here.until_waiting()
        for wrong, code in (
            (Return(session_id=where.session_id, resume_token="x"), "invalid_resume_token"),
            (
                Return(
                    session_id=where.session_id,
                    resume_token=where.resume_token,
                    owner=Owner("another"),
                ),
                "api_key_not_allowed",
            ),
        ):
            with pytest.raises(ClientError) as refused:
                await here.open(wrong)
            assert refused.value.code == code
        assert len(here.calls) == 0
        await here.open(where)


async def test_hanging_up_ends_the_session_whatever_was_asked_for() -> None:
    async with scene() as here:
        await here.open()
        here.call.end("closed")
        await here.until_waiting()
        assert len(here.server.sessions) == 0


async def test_without_asking_a_lost_call_is_over() -> None:
    async with scene() as here:
        await here.calls.open(read_offer(CHROMIUM), None, BoundSession(), Caller(ANYBODY))
        here.call.on_connected()
        here.call.on_channel_open()
        created: dict[str, Any] = here.library.peer.of("session.created")[-1]
        assert "resume_token" not in created
        here.call.on_gone("failed")
        await here.until_waiting()
        assert len(here.server.sessions) == 0


async def test_c51_our_own_client_offers_again() -> None:
    sessions = SessionSettings()
    settings = small_settings(sessions=sessions)
    door = GatewaySettings(
        port=0, drain_timeout_s=0, webrtc=WebRtcSettings(bind_address="127.0.0.1")
    )
    async with running_app(settings.model_copy(update={"gateway": door})) as app:
        call = DuplexClient.connect(
            app.url, transport="webrtc", reconnect=ReconnectPolicy(first_wait_s=0.05)
        )
        async with call:
            first = call.session.id
            item = MessageItem(id="item_mine", role="user", content=(InputText(text="Hello?"),))
            call.send(CreateItem(item=item))
            await call.retrieve("item_mine")
            events = call.events()
            below = call._connection._transport._transport  # type: ignore[union-attr]
            assert isinstance(below, WebRtcTransport)
            await below._connection.close()  # without a word to the server
            back = await anext(event async for event in events if isinstance(event, Reconnected))
            assert back.rolled_over_from is None
            assert call.session.id == first
            assert await call.retrieve("item_mine") == item
            answer = await call.ask("And now?")
            assert answer.status == "completed"
            assert answer.audio_bytes > 0
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0
