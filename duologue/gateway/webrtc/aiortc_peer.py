"""The peer connection of aiortc: Python throughout, so it runs wherever we do.

What it uses beside aiortc's public API is in ``_limit_gathering`` alone, and ``try_out`` tries it.
This module must not know sessions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from aiortc import (
    InvalidAccessError,
    InvalidStateError,
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.exceptions import InternalError, OperationError
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, Packet

from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import ConfigError, ProtocolError
from duologue.gateway.webrtc.audio_in import CLOCK_HZ, FrameAudio
from duologue.gateway.webrtc.offer import AudioOffer, Offer
from duologue.gateway.webrtc.peer import (
    CHANNEL_LABEL,
    LOW_WATER_BYTES,
    Backend,
    Peer,
    PeerListener,
)
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.errors import ErrorCode

NAME = "aiortc"

MAX_WAITING_PACKETS = 10
"""Packets of ours that wait for aiortc's sender: 200 ms; older ones are dropped."""

CLOSE_TIMEOUT_S = 5.0
"""aiortc waits for its own tasks at the end; for so long at most."""

LOOKS_EVERY_S = 0.05
"""An attempt to connect looks every 20 ms whether it is still wanted, and ends by itself."""

_REFUSALS = (
    AssertionError,  # its way of reading what others wrote
    InternalError,
    InvalidAccessError,
    InvalidStateError,
    OperationError,
    ValueError,
    LookupError,
)


class AiortcPeer:
    """A ``Peer``."""

    def __init__(
        self, settings: WebRtcSettings, listener: PeerListener, group: asyncio.TaskGroup
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._group = group
        # An empty list: without one, aiortc asks a public server.
        servers = [
            RTCIceServer(server.url, server.username, server.credential.get_secret_value())
            for server in settings.ice_servers
        ]
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=servers))
        self._connection.on("connectionstatechange", self._on_state)
        self._connection.on("datachannel", self._on_channel)
        self._connection.on("track", self._on_track)
        self._track: _OutgoingTrack | None = None
        self._channel: RTCDataChannel | None = None
        self._audio: AudioOffer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._was_connected = False
        self._gone = False

    async def answer(self, offer: Offer) -> str:
        """Return the answer's SDP."""
        connection = self._connection
        self._audio = offer.audio
        try:
            if offer.audio is not None:
                self._track = _OutgoingTrack(CLOCK_HZ[offer.audio.codec])
                connection.addTrack(self._track)
            await connection.setRemoteDescription(RTCSessionDescription(offer.sdp(), "offer"))
            self._limit_gathering()
            await connection.setLocalDescription(await connection.createAnswer())
        except _REFUSALS as exc:
            raise ProtocolError(
                "the offer cannot be answered: check that audio and data are described as "
                "browsers do",
                code=ErrorCode.INVALID_VALUE,
                param="sdp",
            ) from exc
        return str(connection.localDescription.sdp)

    def send_message(self, message: bytes) -> None:
        """Send a text message, if the channel is open."""
        channel = self._channel
        if channel is not None and channel.readyState == "open":
            channel.send(message.decode())

    def buffered_bytes(self) -> int:
        """How much waits for the network."""
        return 0 if self._channel is None else int(self._channel.bufferedAmount)

    def send_audio(self, payload: bytes, timestamp: int) -> None:
        """Hand a packet to aiortc's sender."""
        if self._track is not None:
            self._track.put(payload, timestamp)

    async def close(self) -> None:
        """Let go of everything."""
        self._gone = True
        if self._track is not None:
            self._track.stop()
        if self._reading is not None:
            # The track of a connection that was never made would not end by itself.
            self._reading.cancel()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._connection.close()
        except TimeoutError:
            # Its sockets are closed by its own tasks, or by the collector; nothing refers to it.
            return
        if not self._was_connected:
            await asyncio.sleep(LOOKS_EVERY_S)

    def _limit_gathering(self) -> None:
        """Let aioice use our address, and wait for no server longer than the settings say."""
        own = self._settings.bind_address
        timeout_s = self._settings.gather_timeout_s
        for transport in self._ice_transports():
            connection = transport.iceGatherer._connection
            gather = connection.get_component_candidates

            async def limited(component: int, addresses: list[str], gather: Any = gather) -> Any:
                return await gather(component, [own] if own else addresses, timeout_s)

            connection.get_component_candidates = limited

    def _ice_transports(self) -> Sequence[Any]:
        dtls = [t.receiver.transport for t in self._connection.getTransceivers()]
        if self._connection.sctp is not None:
            dtls.append(self._connection.sctp.transport)
        return list({id(each.transport): each.transport for each in dtls}.values())

    def _on_state(self) -> None:
        state = self._connection.connectionState
        if state == "connected":
            self._was_connected = True
            self._listener.on_connected()
        elif state in ("failed", "closed") and not self._gone:
            self._gone = True
            self._listener.on_gone(state)

    def _on_channel(self, channel: RTCDataChannel) -> None:
        if channel.label != CHANNEL_LABEL or self._channel is not None:
            return
        self._channel = channel
        channel.bufferedAmountLowThreshold = LOW_WATER_BYTES
        channel.on("message", self._on_message)
        channel.on("bufferedamountlow", self._listener.on_drained)
        self._listener.on_channel_open()

    def _on_message(self, message: str | bytes) -> None:
        self._listener.on_message(message.encode() if isinstance(message, str) else message)

    def _on_track(self, track: MediaStreamTrack) -> None:
        if self._audio is not None:
            reading = self._read(track, FrameAudio(CLOCK_HZ[self._audio.codec]))
            self._reading = self._group.create_task(reading, name="webrtc-audio-in")

    async def _read(self, track: MediaStreamTrack, audio: FrameAudio) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            if not isinstance(frame, AudioFrame):
                continue
            channels = len(frame.layout.channels)
            size = frame.samples * channels * SAMPLE_BYTES
            pcm = audio.receive(bytes(frame.planes[0])[:size], channels, frame.pts or 0)
            if pcm and not self._gone:
                self._listener.on_audio(pcm)


class _OutgoingTrack(MediaStreamTrack):
    """Packets that are encoded already; aiortc's sender asks for one after the other."""

    kind = "audio"

    def __init__(self, clock_hz: int) -> None:
        super().__init__()
        self._time_base = Fraction(1, clock_hz)
        self._packets: deque[Packet[Any]] = deque(maxlen=MAX_WAITING_PACKETS)
        self._filled = asyncio.Event()

    def put(self, payload: bytes, timestamp: int) -> None:
        """Add a packet; the oldest is dropped where nobody takes them."""
        packet = Packet(payload)
        packet.pts = timestamp
        packet.time_base = self._time_base
        self._packets.append(packet)
        self._filled.set()

    async def recv(self) -> Packet[Any]:
        """Wait for the next packet."""
        while not self._packets:
            if self.readyState != "live":
                raise MediaStreamError
            self._filled.clear()
            await self._filled.wait()
        return self._packets.popleft()

    def stop(self) -> None:
        """No more comes."""
        super().stop()
        self._filled.set()


async def try_out(settings: WebRtcSettings) -> Backend:
    """Make one answer, which loads all that a call needs, and see whether aiortc is as we need it.

    Raises:
        ConfigError: It is not.
    """
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    try:
        connection.createDataChannel(CHANNEL_LABEL)
        await connection.createOffer()
        assert connection.sctp is not None
        transport = connection.sctp.transport.transport
        if not callable(getattr(transport.iceGatherer._connection, "get_component_candidates", 0)):
            raise ConfigError("this version of aiortc is not one that we know; install the extra")
    finally:
        await connection.close()

    def make_peer(listener: PeerListener, group: asyncio.TaskGroup) -> Peer:
        return AiortcPeer(settings, listener, group)

    return Backend(NAME, make_peer)
