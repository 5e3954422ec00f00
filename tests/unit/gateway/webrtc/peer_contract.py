"""What every peer connection keeps to, tried with aiortc's client on the other side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from duologue.core.errors import ClientError
from duologue.gateway.webrtc.audio_out import FRAME_BYTES, FrameEncoder
from duologue.gateway.webrtc.offer import Offer, read_offer
from duologue.gateway.webrtc.peer import Backend, Peer
from duologue.gateway.webrtc.settings import IceServer, WebRtcSettings
from tests.conformance.webrtc_caller import (
    Microphone,
    WebRtcCaller,
    loopback,
    offer_of,
    only,
)
from tests.patience import PATIENCE_S
from tests.unit.codecs.tones import loudest_hz, tone
from tests.unit.gateway.webrtc.offers import CHROMIUM

TryOut = Callable[[WebRtcSettings], Awaitable[Backend]]

LOCAL = WebRtcSettings(bind_address="127.0.0.1")

__all__ = ["PeerContract", "TryOut", "loopback"]


class Ear:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.messages: list[bytes] = []
        self.pcm = bytearray()
        self.gone: list[str] = []
        self._came = asyncio.Event()

    def on_connected(self) -> None:
        self._note("connected")

    def on_lost(self) -> None:
        self._note("lost")

    def on_channel_open(self) -> None:
        self._note("open")

    def on_drained(self) -> None:
        self._note("drained")

    def on_message(self, message: bytes) -> None:
        self.messages.append(message)
        self._note("message")

    def on_audio(self, pcm: bytes) -> None:
        self.pcm += pcm
        self._came.set()

    def on_gone(self, reason: str) -> None:
        self.gone.append(reason)
        self._note("gone")

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._came.clear()
                await self._came.wait()

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self._came.set()


class Pair:
    """A peer of ours, and a client that is connected to it."""

    def __init__(self, peer: Peer, ear: Ear, caller: WebRtcCaller, offer: Offer) -> None:
        self.peer = peer
        self.ear = ear
        self.caller = caller
        self.offer = offer
        self._frames = 0

    def play(self, pcm: bytes) -> None:
        """Send a tone, all at once."""
        assert self.offer.audio is not None
        encoder = FrameEncoder(self.offer.audio.codec, LOCAL)
        for start in range(0, len(pcm), FRAME_BYTES):
            self.peer.send_audio(
                encoder.encode(pcm[start : start + FRAME_BYTES]), self._frames * encoder.step
            )
            self._frames += 1


@asynccontextmanager
async def pair(try_out: TryOut, *, codec: str = "opus", audio: bool = True) -> AsyncIterator[Pair]:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    microphone = Microphone() if audio else None
    caller = WebRtcCaller(connection, microphone)
    if microphone is not None:
        connection.addTrack(microphone)
    ear = Ear()
    backend = await try_out(LOCAL)
    async with asyncio.TaskGroup() as group:
        peer = backend.make_peer(ear, group)
        try:
            sdp = await offer_of(connection)
            offer = read_offer(sdp if codec == "opus" else only(codec, sdp))
            answer = RTCSessionDescription(await peer.answer(offer), "answer")
            await connection.setRemoteDescription(answer)
            await ear.until(lambda: {"connected", "open"} <= set(ear.calls))
            async with asyncio.timeout(PATIENCE_S):
                await caller.opened.wait()
            yield Pair(peer, ear, caller, offer)
        finally:
            await caller.close()
            await peer.close()


@pytest.mark.usefixtures("loopback")
class PeerContract:
    """Subclassed once for each library."""

    @pytest.fixture
    def try_out(self) -> TryOut:
        raise NotImplementedError

    async def test_messages_travel_both_ways_and_in_order(self, try_out: TryOut) -> None:
        async with pair(try_out, audio=False) as both:
            for number in range(20):
                both.peer.send_message(b'{"type":"m","n":%d}' % number)
                both.caller.channel.send(str(number))
            await both.caller.until(lambda: len(both.caller.events) == 20)
            await both.ear.until(lambda: len(both.ear.messages) == 20)
            assert [event["n"] for event in both.caller.events] == list(range(20))
            assert both.ear.messages == [str(number).encode() for number in range(20)]

    async def test_a_long_message_arrives_whole_and_what_waits_is_known(
        self, try_out: TryOut
    ) -> None:
        async with pair(try_out, audio=False) as both:
            text = "x" * 60_000
            for _ in range(25):
                both.peer.send_message(b'{"type":"%b"}' % text.encode())
            assert both.peer.buffered_bytes() > 64 * 1024
            await both.caller.until(lambda: len(both.caller.events) == 25)
            await both.ear.until(lambda: "drained" in both.ear.calls)
            assert {len(event["type"]) for event in both.caller.events} == {60_000}
            await both.ear.until(lambda: both.peer.buffered_bytes() == 0)

    @pytest.mark.parametrize("codec", ["opus", "pcmu", "pcma"])
    async def test_c31_a_tone_is_heard_on_both_sides(self, try_out: TryOut, codec: str) -> None:
        async with pair(try_out, codec=codec) as both:
            assert both.caller.microphone is not None
            both.caller.microphone.say(tone(24_000, 1.5))
            await both.ear.until(lambda: len(both.ear.pcm) > 2 * 24_000 * 1.2)
            middle = bytes(both.ear.pcm[2 * 12_000 : 2 * 24_000])
            assert loudest_hz(middle, 24_000) == pytest.approx(1000, abs=5)
            both.play(tone(24_000, 0.18))
            await both.caller.hears(4)
            heard = both.caller.sound().astype("<i2").tobytes()
            rate_hz = 48_000 if codec == "opus" else 8_000
            assert loudest_hz(heard, rate_hz) == pytest.approx(1000, abs=20)

    async def test_packets_carry_the_time_that_they_were_given(self, try_out: TryOut) -> None:
        async with pair(try_out) as both:
            both.play(tone(24_000, 0.18))
            await both.caller.hears(4)
            assert set(np.diff(both.caller.positions)) == {960}

    async def test_a_peer_that_hangs_up_is_gone_once(self, try_out: TryOut) -> None:
        async with pair(try_out) as both:
            await both.caller.close()
            await both.ear.until(lambda: bool(both.ear.gone))
            both.peer.send_message(b"{}")
            both.peer.send_audio(b"\xf8\xff\xfe", 0)
            await both.peer.close()
            assert len(both.ear.gone) == 1

    async def test_our_own_end_is_not_reported(self, try_out: TryOut) -> None:
        async with pair(try_out) as both:
            await both.peer.close()
            await both.peer.close()
            both.peer.send_message(b"{}")
            both.peer.send_audio(b"\xf8\xff\xfe", 0)
            assert both.peer.buffered_bytes() == 0
            assert both.ear.gone == []

    async def test_an_answer_has_the_address_that_was_asked_for(self, try_out: TryOut) -> None:
        answer = await answered(try_out, LOCAL)
        hosts = {line.split()[4] for line in answer.splitlines() if "a=candidate" in line}
        assert hosts == {"127.0.0.1"}
        assert "rtpmap:111 opus/48000/2" in answer

    async def test_c71_a_server_that_never_answers_delays_the_answer_by_its_time_alone(
        self, try_out: TryOut
    ) -> None:
        black_hole = IceServer(url="stun:192.0.2.1:3478")
        settings = WebRtcSettings(
            bind_address="127.0.0.1", ice_servers=(black_hole,), gather_timeout_s=0.05
        )
        assert "a=candidate" in await answered(try_out, settings)

    async def test_an_offer_that_the_library_cannot_take_is_the_clients_mistake(
        self, try_out: TryOut
    ) -> None:
        class Nonsense(Offer):
            def sdp(self) -> str:
                return "v=0\r\nm=nonsense\r\n"

        made = read_offer(CHROMIUM)
        nonsense = Nonsense(**{name: getattr(made, name) for name in Offer.__slots__})
        with pytest.raises(ClientError, match="cannot be answered"):
            await answered(try_out, LOCAL, nonsense)


async def answered(try_out: TryOut, settings: WebRtcSettings, offer: Offer | None = None) -> str:
    backend = await try_out(settings)
    refused: list[ClientError] = []
    answer = ""
    async with asyncio.TaskGroup() as group:
        peer = backend.make_peer(Ear(), group)
        try:
            answer = await peer.answer(offer or read_offer(CHROMIUM))
        except ClientError as exc:
            refused.append(exc)
        finally:
            await peer.close()
    if refused:
        raise refused[0]
    return answer
