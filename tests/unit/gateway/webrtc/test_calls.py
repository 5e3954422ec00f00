from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import CapacityError, ClientError, DuologueError, UnknownSession
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.gateway.auth import Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.webrtc.backend import BACKENDS
from duologue.gateway.webrtc.calls import Calls, unsupported
from duologue.gateway.webrtc.offer import read_offer
from duologue.gateway.webrtc.peer import BackendMissing
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.session_patch import AudioInputPatch, AudioPatch, SessionPatch
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.settings import SessionSettings
from tests.fakes.peer import ANSWER, FakeBackend
from tests.unit.gateway.small_server import SmallServer, small_server
from tests.unit.gateway.webrtc.offers import CHROMIUM

ME = Caller(ANYBODY)
OFFER = read_offer(CHROMIUM)
ANOTHER = read_offer(CHROMIUM.replace("yDKz", "zDKy"))


class Scene:
    """Calls on a server whose peers are fakes."""

    def __init__(self, server: SmallServer, library: FakeBackend, calls: Calls) -> None:
        self.server = server
        self.library = library
        self.calls = calls

    async def open(self, asked: BoundSession | None = None, caller: Caller = ME) -> str:
        call_id, answer = await self.calls.open(OFFER, None, asked or BoundSession(), caller)
        assert answer == ANSWER
        return call_id


@asynccontextmanager
async def scene(sessions: SessionSettings | None = None) -> AsyncIterator[Scene]:
    library = FakeBackend()
    async with small_server(sessions=sessions) as server:
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
        assert len(calls) == 0


async def test_a_call_takes_a_session_and_gives_it_back() -> None:
    async with scene() as here:
        call_id = await here.open()
        assert call_id.startswith("rtc_")
        assert (len(here.calls), len(here.server.sessions)) == (1, 1)
        await here.calls.hang_up(call_id, ME)
        assert len(here.server.sessions) == 0
        with pytest.raises(UnknownSession, match="or it has ended"):
            await here.calls.hang_up("rtc_unknown", ME)


async def test_calls_count_against_the_limit_of_sessions() -> None:
    async with scene(SessionSettings(max_sessions=1)) as here:
        await here.open()
        with pytest.raises(CapacityError):
            await here.calls.open(ANOTHER, None, BoundSession(), ME)


async def test_an_offer_that_cannot_be_answered_leaves_nothing_behind() -> None:
    async with scene() as here:
        here.library.refuse = ClientError("no")
        with pytest.raises(ClientError, match="no"):
            await here.open()
        assert (len(here.calls), len(here.server.sessions)) == (0, 0)
        assert here.library.peer.closed == 1


async def test_c31_formats_that_the_track_cannot_have_are_refused_before_the_call() -> None:
    patch = SessionPatch(
        audio=AudioPatch(input=AudioInputPatch(format=FormatPatch(type="audio/pcmu")))
    )
    async with scene() as here:
        with pytest.raises(ClientError) as caught:
            await here.open(BoundSession(patch=patch))
        assert caught.value.param == "session.audio.input.format"
        assert len(here.server.sessions) == 0


async def test_a_client_secret_has_the_last_word_about_the_session() -> None:
    bound = BoundSession("other", SessionPatch(instructions="Bound."))
    asked = BoundSession("echo", SessionPatch(instructions="Asked."))
    async with scene() as here:
        await here.open(asked, Caller(ANYBODY, bound))
        here.library.peer.listener.on_connected()
        here.library.peer.listener.on_channel_open()
        (created,) = here.library.peer.of("session.created")
        assert created["session"]["instructions"] == "Bound."
        assert created["session"]["model"] == "other"


async def test_c71_the_same_offer_again_ends_the_call_that_it_opened() -> None:
    async with scene() as here:
        first = await here.open()
        second = await here.open()
        assert first != second
        assert len(here.server.sessions) == 1
        await here.calls.open(ANOTHER, None, BoundSession(), ME)
        assert len(here.server.sessions) == 2


async def test_a_call_is_its_owners() -> None:
    async with scene() as here:
        call_id = await here.open()
        with pytest.raises(UnknownSession):
            await here.calls.observe(call_id, Caller(Owner("somebody else")))
        (await here.calls.observe(call_id, ME)).close("closed")


async def test_the_end_of_the_server_is_the_end_of_every_call() -> None:
    async with scene() as here:
        await here.open()
        peer = here.library.peer
    assert peer.closed == 1


async def test_a_bug_in_a_call_ends_that_call_alone() -> None:
    class Broken(Exception):
        pass

    async with scene() as here:
        await here.open()
        _, peer = await here.calls.open(ANOTHER, None, BoundSession(), ME), here.library.peer

        def fail(_message: bytes) -> None:
            raise Broken

        peer.send_message = fail  # type: ignore[method-assign]
        peer.listener.on_connected()
        peer.listener.on_channel_open()
        assert len(here.server.sessions) == 1


async def test_without_a_library_the_refusal_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in BACKENDS:
        monkeypatch.setitem(sys.modules, f"duologue.gateway.webrtc.{name}_peer", None)
    async with small_server() as server:
        clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
        calls = Calls(server.host, WebRtcSettings(), clock, wheel, id_maker())
        await calls.start()
        with pytest.raises(DuologueError) as caught:
            await calls.open(OFFER, None, BoundSession(), ME)
        assert caught.value.code == "webrtc_unavailable"
        await calls.stop()
        named = WebRtcSettings(backend="aiortc")
        calls = Calls(server.host, named, clock, wheel, id_maker())
        with pytest.raises(BackendMissing):
            await calls.start()
        await calls.stop()


def test_what_only_phone_calls_can_do_is_refused_by_its_name() -> None:
    assert "'refer'" in unsupported("refer").message
