"""The peer connection of libdatachannel: ICE, DTLS, SRTP and SCTP in C++, on threads of their own.

Packets come as they are on the wire and are decoded on the library's thread, so that the event
loop gets PCM. Needs Python 3.12. This module must not know sessions.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVarTuple

import libdatachannel as rtc

from duologue.core.errors import ProtocolError
from duologue.gateway.webrtc.audio_in import RtpAudio
from duologue.gateway.webrtc.offer import AudioOffer, Offer
from duologue.gateway.webrtc.peer import (
    CHANNEL_LABEL,
    LOW_WATER_BYTES,
    Backend,
    Peer,
    PeerListener,
)
from duologue.gateway.webrtc.rtp import RtpWriter
from duologue.gateway.webrtc.settings import IceServer, WebRtcSettings
from duologue.protocol.errors import ErrorCode
from duologue.telemetry import get_logger

NAME = "libdatachannel"

OPUS_PROFILE = "minptime=10;useinbandfec=1"
"""What we want to get: one channel, with hints for packets that are lost."""

MAX_WAITING_CHUNKS = 50
"""PCM that waits for a busy loop: a second; the oldest is dropped."""

CLOSE_TIMEOUT_S = 2.0
"""The library closes by itself, soon after it was told to."""

CALLBACKS_TIMEOUT_S = 0.3
"""It drops callbacks at once where the peer has hung up, and only with the track where we have."""

_Args = TypeVarTuple("_Args")
_State = rtc.PeerConnection.State


class LentCallbacks:
    """Callbacks of one connection that the library holds.

    When the peer hangs up, the library drops them on threads of its own, one after the other: it
    holds a lock of the track or channel and waits for the interpreter. Whoever lets go of that
    track or channel meanwhile holds the interpreter and waits for the lock, and both wait for good.
    So nothing should be let go of while they are on their way back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lent = 0
        self._news = asyncio.Event()

    def lend(self, callback: Callable[[*_Args], None]) -> Callable[[*_Args], None]:
        """Return what to hand to the library in place of a callback."""

        def lent(*args: *_Args) -> None:
            callback(*args)

        self._lent += 1
        weakref.finalize(lent, self._tell).atexit = False
        return lent

    async def wait_back(self, timeout_s: float) -> bool:
        """Wait until the library holds none any more; tells whether that is so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._lent:
                    self._news.clear()
                    await self._news.wait()
        return not self._lent

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._back)

    def _back(self) -> None:
        self._lent -= 1
        self._news.set()


class LibdatachannelPeer:
    """A ``Peer``.

    Concurrency:
        The library calls from its own threads. ``_on_datagram`` decodes there; all else is handed
        to the loop.
    """

    def __init__(self, settings: WebRtcSettings, listener: PeerListener) -> None:
        self._settings = settings
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._connection = rtc.PeerConnection(_configuration(settings))
        self._track: Any = None
        self._channel: Any = None
        self._rtp_in: RtpAudio | None = None
        self._rtp_out: RtpWriter | None = None
        self._gathered = asyncio.Event()
        self._closed = asyncio.Event()
        self._heard: deque[bytes] = deque(maxlen=MAX_WAITING_CHUNKS)
        self._hearing = False
        self._gone = False
        self._callbacks = LentCallbacks(self._loop)
        self._connection.on_state_change(self._callbacks.lend(self._on_state_change))

    async def answer(self, offer: Offer) -> str:
        """Return the answer's SDP."""
        connection = self._connection
        lend = self._callbacks.lend
        connection.on_gathering_state_change(lend(self._on_gathering))
        connection.on_data_channel(lend(lambda channel: self._on_loop(self._on_channel, channel)))
        try:
            if offer.audio is not None:
                self._add_track(offer.audio)
            connection.set_remote_description(
                rtc.Description(offer.sdp(), rtc.Description.Type.Offer)
            )
            connection.set_local_description(rtc.Description.Type.Answer)
        except (RuntimeError, ValueError) as exc:
            raise ProtocolError(
                "the offer cannot be answered: check that audio and data are described as "
                "browsers do",
                code=ErrorCode.INVALID_VALUE,
                param="sdp",
            ) from exc
        try:
            async with asyncio.timeout(self._settings.gather_timeout_s):
                await self._gathered.wait()
        except TimeoutError:
            pass  # a server does not answer; what was found so far will do
        return str(connection.local_description())

    def send_message(self, message: bytes) -> None:
        """Send a text message, if the channel is open."""
        if self._channel is not None and self._channel.is_open():
            self._channel.send(message.decode())

    def buffered_bytes(self) -> int:
        """How much waits for the network."""
        return 0 if self._channel is None else int(self._channel.buffered_amount())

    def send_audio(self, payload: bytes, timestamp: int) -> None:
        """Send a packet; it is lost where the connection is not there yet."""
        if self._rtp_out is not None:
            packet = self._rtp_out.write(payload, timestamp)
            if self._track.is_open():
                self._track.send(packet)

    async def close(self) -> None:
        """Let go of everything."""
        self._gone = True
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._rtp_out = None
        # Callbacks are not taken back, nor is the connection let go of, while the library's threads
        # may be in one: the library would wait for them, and they for the interpreter.
        await asyncio.to_thread(connection.close)
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._closed.wait()
        except TimeoutError:
            get_logger("gateway").warning("webrtc_connection_lingers")
        await self._callbacks.wait_back(CALLBACKS_TIMEOUT_S)
        self._track = self._channel = None

    def _add_track(self, audio: AudioOffer) -> None:
        direction = {
            "sendrecv": rtc.Description.Direction.SendRecv,
            "sendonly": rtc.Description.Direction.RecvOnly,
            "recvonly": rtc.Description.Direction.SendOnly,
            "inactive": rtc.Description.Direction.Inactive,
        }[audio.direction]
        media = rtc.Description.Audio(audio.mid, direction)
        if audio.codec == "opus":
            media.add_opus_codec(audio.payload_type, OPUS_PROFILE)
        elif audio.codec == "pcmu":
            media.add_pcmu_codec(audio.payload_type)
        else:
            media.add_pcma_codec(audio.payload_type)
        ssrc = secrets.randbits(32)
        media.add_ssrc(ssrc, "duologue", "duologue", "audio")
        self._rtp_in = RtpAudio(audio)
        self._rtp_out = RtpWriter(audio.payload_type, ssrc, secrets.randbits(32))
        self._track = self._connection.add_track(media)
        self._track.set_media_handler(rtc.RtcpReceivingSession())
        lend = self._callbacks.lend
        self._track.on_message(lend(self._on_datagram), lend(_ignore_text))

    # On the library's threads

    def _on_loop(self, callback: Callable[[*_Args], None], *args: *_Args) -> None:
        if not self._gone:
            self._loop.call_soon_threadsafe(callback, *args)

    def _on_state_change(self, state: rtc.PeerConnection.State) -> None:
        # Told after our own end, too.
        self._loop.call_soon_threadsafe(self._on_state, state)

    def _on_gathering(self, state: rtc.PeerConnection.GatheringState) -> None:
        if state == rtc.PeerConnection.GatheringState.Complete:
            self._on_loop(self._gathered.set)

    def _on_datagram(self, datagram: bytes) -> None:
        assert self._rtp_in is not None
        pcm = self._rtp_in.receive(bytes(datagram))
        if pcm:
            self._heard.append(pcm)
            if not self._hearing:
                # One call of the loop for all that comes until it is made.
                self._hearing = True
                self._on_loop(self._hear)

    # On the loop

    def _hear(self) -> None:
        self._hearing = False
        while self._heard and not self._gone:
            self._listener.on_audio(self._heard.popleft())

    def _on_state(self, state: rtc.PeerConnection.State) -> None:
        if state == _State.Closed:
            self._closed.set()
        if self._gone:
            return
        if state == _State.Connected:
            self._listener.on_connected()
        elif state == _State.Disconnected:
            self._listener.on_lost()
        elif state in (_State.Failed, _State.Closed):
            self._gone = True
            self._listener.on_gone("failed" if state == _State.Failed else "closed")

    def _on_channel(self, channel: rtc.DataChannel) -> None:
        if self._gone or channel.label() != CHANNEL_LABEL or self._channel is not None:
            return
        self._channel = channel
        channel.set_buffered_amount_low_threshold(LOW_WATER_BYTES)
        lend = self._callbacks.lend
        channel.on_buffered_amount_low(lend(lambda: self._on_loop(self._listener.on_drained)))
        channel.on_message(
            lend(lambda message: self._on_loop(self._on_message, bytes(message))),
            lend(lambda message: self._on_loop(self._on_message, message.encode())),
        )
        self._listener.on_channel_open()

    def _on_message(self, message: bytes) -> None:
        if not self._gone:
            self._listener.on_message(message)


async def try_out(settings: WebRtcSettings) -> Backend:
    """Make a connection, so that the library has started its threads."""
    connection = rtc.PeerConnection(_configuration(settings))
    await asyncio.to_thread(connection.close)

    def make_peer(listener: PeerListener, _group: asyncio.TaskGroup) -> Peer:
        return LibdatachannelPeer(settings, listener)

    return Backend(NAME, make_peer)


def _configuration(settings: WebRtcSettings) -> rtc.Configuration:
    configuration = rtc.Configuration()
    configuration.ice_servers = [_ice_server(server) for server in settings.ice_servers]
    configuration.bind_address = settings.bind_address
    configuration.disable_auto_negotiation = True
    return configuration


def _ice_server(server: IceServer) -> rtc.IceServer:
    made = rtc.IceServer(server.url)
    made.username = server.username
    made.password = server.credential.get_secret_value()
    return made


def _ignore_text(_message: str) -> None:
    """Tracks carry none."""
