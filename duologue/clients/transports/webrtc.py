"""A call over WebRTC, with aiortc: speech on a track, everything else on a data channel.

All that the libraries raise is translated here; they come with the extra ``webrtc``. This module
must not know what is said in a call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from fractions import Fraction
from typing import Any
from urllib.parse import urljoin

import aiohttp
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.exceptions import InternalError, InvalidAccessError, InvalidStateError, OperationError
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame
from websockets.datastructures import Headers
from websockets.http11 import Response as HttpResponse

from duologue.clients.address import HOW_TO_START
from duologue.clients.errors import (
    CallEnded,
    CallError,
    ConnectionLost,
    NotRealtimeServer,
    ServerUnreachable,
)
from duologue.clients.playback import RATE_HZ
from duologue.clients.track import FromTrack, TrackLabels
from duologue.clients.transports.base import Received
from duologue.clients.transports.websocket import status_error
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.clock import Clock, SystemClock
from duologue.core.tasks import guard
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.client_dialects import CLIENT_DIALECTS
from duologue.protocol.commands import Command

CHANNEL = "oai-events"
TRACK_HZ = 48_000
FRAME_MS = 20
FRAME_BYTES = ms_to_samples(FRAME_MS, TRACK_HZ) * SAMPLE_BYTES

MAX_SAID_BYTES = 50 * FRAME_BYTES
"""Speech that waits for its turn on the track before ``send`` waits: a second."""

MAX_HEARD_FRAMES = 250
"""Frames that wait for a busy loop; past these 5 s the oldest are lost."""

MAX_MESSAGES = 4096
HIGH_WATER_BYTES = 64 * 1024
"""What waits in the data channel before ``send`` waits."""

CLOSE_TIMEOUT_S = 5.0
_REFUSALS = (
    AssertionError,  # its way of reading what others wrote
    InternalError,
    InvalidAccessError,
    InvalidStateError,
    OperationError,
    ValueError,
    LookupError,
)


class WebRtcTransport:
    """A connected peer; see ``open``."""

    server_plays = True

    def __init__(
        self, ice_servers: list[RTCIceServer], clock: Clock, labels: TrackLabels | None = None
    ) -> None:
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=ice_servers))
        self._microphone = _Microphone(clock)
        self._connection.addTrack(self._microphone)
        self._channel = self._connection.createDataChannel(CHANNEL)
        self._decode = CLIENT_DIALECTS["realtime", "json"].decode_event
        self._encode = CLIENT_DIALECTS["realtime", "json"].encode_command
        self._labels = labels or TrackLabels()
        self._messages: deque[bytes | None] = deque()
        """In the order of arrival; ``None`` stands for the next frame."""
        self._frames: deque[bytes] = deque()
        self._labelled: deque[FromTrack] = deque()
        self._news = asyncio.Event()
        self._opened = asyncio.Event()
        self._room = asyncio.Event()
        self._ended: CallError | None = None
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False
        self._api_key: str | None = None
        self._location: str | None = None
        self._channel.bufferedAmountLowThreshold = HIGH_WATER_BYTES // 2
        self._channel.on("open", self._opened.set)
        self._channel.on("message", self._on_message)
        self._channel.on("close", lambda: self._end(CallEnded("the call is over")))
        self._channel.on("bufferedamountlow", self._room.set)
        self._connection.on("track", self._on_track)
        self._connection.on("connectionstatechange", self._on_state)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        open_timeout_s: float = 10.0,
        ice_servers: tuple[str, ...] = (),
        clock: Clock | None = None,
        labels: TrackLabels | None = None,
    ) -> WebRtcTransport:
        """Call, and wait until events can flow.

        Args:
            url: Where offers are posted: ``http://localhost:8080/v1/realtime/calls``.
            api_key: Sent as a bearer token; a client secret will do.
            ice_servers: URLs of STUN servers; none are asked by default.
            labels: Those of the call that this one goes on with.

        Raises:
            ServerUnreachable: Nobody answers, or no media path was found.
            AuthError: The key is missing or wrong.
            CapacityError: The server is full, or still starting.
            NotRealtimeServer: Who answers takes no calls over WebRTC.
        """
        servers = [RTCIceServer(server) for server in ice_servers]
        transport = cls(servers, clock or SystemClock(), labels)
        await transport._group.__aenter__()
        try:
            async with asyncio.timeout(open_timeout_s):
                await transport._connect(url, api_key)
                await transport._opened.wait()
        except TimeoutError as exc:
            await transport.close()
            raise ServerUnreachable(
                f"no connection with {url} came about within {open_timeout_s:g} s; is it on a "
                "network that this machine can reach by UDP?"
            ) from exc
        except BaseException:
            await transport.close()
            raise
        return transport

    async def send(self, command: Command) -> None:
        """Say it on the track, or write it to the channel."""
        if isinstance(command, AppendAudio):
            await self._microphone.say(command.audio)
        while self._ended is None and self._channel.bufferedAmount > HIGH_WATER_BYTES:
            self._room.clear()
            await self._room.wait()
        if self._ended is not None:
            raise self._ended
        if not isinstance(command, AppendAudio):
            self._channel.send(self._encode(command).decode())

    async def receive(self) -> Received:
        """Return the next event, or the next frame of an answer."""
        while True:
            if self._labelled:
                return Received(self._labelled.popleft(), None)
            if self._messages:
                message = self._messages.popleft()
                if message is None:
                    self._labelled.extend(self._labels.on_frame(self._frames.popleft()))
                    continue
                event, seq = self._decode(message)
                self._labelled.extend(self._labels.on_event(event))
                return Received(event, seq)
            if self._ended is not None:
                raise self._ended
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """Hang up; the server is told, since it might wait for us to come back."""
        goes_on = self._ended is None
        self._end(CallEnded("the call is over"))
        if self._closed:
            return
        self._closed = True
        self._microphone.stop()
        with suppress(TimeoutError, CallError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                if goes_on and self._location is not None:
                    await _hang_up(self._location, self._api_key)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._connection.close()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def abort(self) -> None:
        """Stop speaking and listening; the connection is taken down meanwhile."""
        self._end(CallEnded("the call is over"))
        self._microphone.stop()
        if not self._closed:
            self._start("client-abort", self._connection.close())

    async def _connect(self, url: str, api_key: str | None) -> None:
        connection = self._connection
        await connection.setLocalDescription(await connection.createOffer())
        answer, location = await _post(url, connection.localDescription.sdp, api_key)
        self._api_key, self._location = api_key, urljoin(url, location) if location else None
        try:
            await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        except _REFUSALS as exc:
            raise NotRealtimeServer(f"{url} answered with something that is no SDP answer") from exc

    def _on_message(self, message: str | bytes) -> None:
        if len(self._messages) >= MAX_MESSAGES + MAX_HEARD_FRAMES:
            self._end(ConnectionLost("the client read nothing for too long"))
            return
        self._messages.append(message.encode() if isinstance(message, str) else message)
        self._news.set()

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._start("client-track", self._listen(track))

    async def _listen(self, track: MediaStreamTrack) -> None:
        resampler = StreamResampler(TRACK_HZ, RATE_HZ)
        with suppress(MediaStreamError):  # the track has ended
            while True:
                frame = await track.recv()
                if isinstance(frame, AudioFrame):
                    self._heard(resampler.process(_mono(frame)))

    def _heard(self, pcm: bytes) -> None:
        if len(self._frames) >= MAX_HEARD_FRAMES:
            self._frames.popleft()
        else:
            self._messages.append(None)
        self._frames.append(pcm)
        self._news.set()

    def _on_state(self) -> None:
        if self._connection.connectionState == "failed":
            self._end(ConnectionLost("the connection to the server broke; call again"))
        elif self._connection.connectionState == "closed":
            self._end(CallEnded("the call is over"))

    def _end(self, error: CallError) -> None:
        if self._ended is None:
            self._ended = error
        self._news.set()
        self._room.set()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._group.create_task(guard(work, self._crashed), name=name))

    def _crashed(self, exc: Exception) -> None:
        self._end(ConnectionLost(f"the track could not be read: {type(exc).__name__}"))


class _Microphone(MediaStreamTrack):
    """Says what it is given, a frame every 20 ms, and is silent else."""

    kind = "audio"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._now = clock.now
        self._resampler = StreamResampler(RATE_HZ, TRACK_HZ)
        self._said = bytearray()
        self._room = asyncio.Event()
        self._began_at: float | None = None
        self._frames = 0

    async def say(self, pcm: bytes) -> None:
        """Add speech at ``RATE_HZ``; waits while more than a second waits."""
        while len(self._said) > MAX_SAID_BYTES and self.readyState == "live":
            self._room.clear()
            await self._room.wait()
        self._said += self._resampler.process(pcm)

    async def recv(self) -> AudioFrame:
        """Hand out the next frame when it is due."""
        if self._began_at is None:
            self._began_at = self._now()
        due = self._began_at + self._frames * FRAME_MS / 1000
        await asyncio.sleep(max(0.0, due - self._now()))
        if self.readyState != "live":
            raise MediaStreamError
        said = bytes(self._said[:FRAME_BYTES])
        del self._said[:FRAME_BYTES]
        self._room.set()
        frame = AudioFrame("s16", "mono", FRAME_BYTES // SAMPLE_BYTES)
        frame.planes[0].update(said.ljust(FRAME_BYTES, b"\0"))
        frame.sample_rate = TRACK_HZ
        frame.time_base = Fraction(1, TRACK_HZ)
        frame.pts = self._frames * (FRAME_BYTES // SAMPLE_BYTES)
        self._frames += 1
        return frame

    def stop(self) -> None:
        """End it, and let nobody wait for room any more."""
        super().stop()
        self._room.set()


async def _hang_up(call_url: str, api_key: str | None) -> None:
    with suppress(aiohttp.ClientError, OSError):
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{call_url}/hangup", headers=_authorization(api_key)),
        ):
            pass


def _authorization(api_key: str | None) -> dict[str, str]:
    return {} if api_key is None else {"Authorization": f"Bearer {api_key}"}


async def _post(url: str, offer: str, api_key: str | None) -> tuple[str, str | None]:
    """Return the answer to an offer, and where the call is."""
    headers = {"Content-Type": "application/sdp", **_authorization(api_key)}
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.post(url, data=offer, headers=headers) as response,
        ):
            body = await response.read()
            status, given = response.status, dict(response.headers)
    except (aiohttp.ClientError, OSError) as exc:
        raise ServerUnreachable(f"nobody answers at {url} ({exc}). {HOW_TO_START}") from exc
    if status == 201:
        return body.decode(errors="replace"), given.get("Location")
    raise status_error(
        HttpResponse(status, "", Headers(given), body), url, instead_of="answering the offer"
    )


def _mono(frame: AudioFrame) -> bytes:
    """The first channel of a frame, as packed s16."""
    samples = frame.to_ndarray().reshape(-1, len(frame.layout.channels))
    return bytes(samples[:, 0].tobytes())
