"""A caller who uses aiortc: real ICE, DTLS and SRTP, a microphone that speaks PCM, and an ear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Any

import aiohttp
import aioice.ice
import numpy as np
import pytest
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame
from numpy.typing import NDArray

from tests.patience import PATIENCE_S

RATE_HZ = 48_000
FRAME = RATE_HZ // 50

Event = Mapping[str, Any]


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep callers on this machine: aioice leaves 127.0.0.1 out, and takes all other addresses."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda **_: ["127.0.0.1"])


class Microphone(MediaStreamTrack):
    """Speaks what it is given, in real time, and is silent else."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._to_say = bytearray()
        self._position = 0
        self._start: float | None = None
        self.muted = False

    def say(self, pcm: bytes, rate_hz: int = 24_000) -> None:
        """Speak s16le PCM, behind what is being said."""
        samples = np.frombuffer(pcm, "<i2")
        self._to_say += np.repeat(samples, RATE_HZ // rate_hz).tobytes()

    @property
    def is_silent(self) -> bool:
        return not self._to_say

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        if self._start is None:
            self._start = loop.time()
        await asyncio.sleep(max(0.0, self._start + self._position / RATE_HZ - loop.time()))
        while self.muted:
            await asyncio.sleep(0.02)
            self._position = round((loop.time() - self._start) * RATE_HZ)
        taken = bytes(self._to_say[: 2 * FRAME])
        del self._to_say[: 2 * FRAME]
        frame = AudioFrame("s16", "mono", FRAME)
        frame.planes[0].update(taken.ljust(2 * FRAME, b"\0"))
        frame.sample_rate = RATE_HZ
        frame.pts = self._position
        frame.time_base = Fraction(1, RATE_HZ)
        self._position += FRAME
        return frame


class WebRtcCaller:
    """One call, as a page makes it."""

    def __init__(self, connection: RTCPeerConnection, microphone: Microphone | None) -> None:
        self.connection = connection
        self.microphone = microphone
        self.channel = connection.createDataChannel("oai-events")
        self.events: list[Event] = []
        self.heard: list[NDArray[np.int16]] = []
        """Frames of 20 ms, mono, as they came."""
        self.positions: list[int] = []
        """Their places on the stream's clock."""
        self.heard_at: list[float] = []
        self.opened = asyncio.Event()
        self._came = asyncio.Event()
        self._ear: asyncio.Task[None] | None = None
        self.answer = ""
        self.location = ""
        self.channel.on("open", self.opened.set)
        self.channel.on("message", self._on_message)
        connection.on("track", self._on_track)

    def send(self, type_: str, **fields: object) -> None:
        self.channel.send(json.dumps({"type": type_, **fields}))

    def of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event["type"] in types]

    async def event(self, type_: str, number: int = 1) -> Event:
        """Wait for the n-th event of a type."""
        await self.until(lambda: len(self.of(type_)) >= number)
        return self.of(type_)[number - 1]

    async def hears(self, frames: int) -> None:
        """Wait until so many more frames have come."""
        due = len(self.heard) + frames
        await self.until(lambda: len(self.heard) >= due)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is looked at when something has come."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._came.clear()
                await self._came.wait()

    def sound(self, start: int = 0, end: int | None = None) -> NDArray[np.int16]:
        frames = self.heard[start:end]
        return np.concatenate(frames) if frames else np.zeros(0, np.int16)

    def _on_message(self, message: str) -> None:
        self.events.append(json.loads(message))
        self._came.set()

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._ear = asyncio.get_running_loop().create_task(self._listen(track), name="ear")

    async def _listen(self, track: MediaStreamTrack) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, AudioFrame)
            samples = frame.to_ndarray().reshape(-1, len(frame.layout.channels))
            self.heard.append(samples[:, 0])
            self.positions.append(frame.pts or 0)
            self.heard_at.append(loop.time())
            self._came.set()

    async def close(self) -> None:
        await self.connection.close()
        if self._ear is not None:
            await self._ear


async def offer_of(connection: RTCPeerConnection) -> str:
    """Make an offer with all its candidates."""
    await connection.setLocalDescription(await connection.createOffer())
    return str(connection.localDescription.sdp)


@asynccontextmanager
async def webrtc_call(
    http_url: str,
    *,
    audio: bool = True,
    session: Mapping[str, object] | None = None,
    key: str | None = None,
    codec: str = "opus",
) -> AsyncIterator[WebRtcCaller]:
    """Call, and wait until events can flow.

    Args:
        http_url: What OpenAI's clients call the base URL.
        session: Sent beside the offer, in a form.
    """
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    microphone = Microphone() if audio else None
    caller = WebRtcCaller(connection, microphone)
    if microphone is not None:
        connection.addTrack(microphone)
    try:
        offer = await offer_of(connection)
        if codec != "opus":
            offer = only(codec, offer)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession() as http:
            if session is None:
                body: Any = offer
                headers["Content-Type"] = "application/sdp"
            else:
                body = aiohttp.FormData()
                body.add_field("sdp", offer, content_type="application/sdp")
                body.add_field("session", json.dumps(session), content_type="application/json")
            async with http.post(
                f"{http_url}/realtime/calls", data=body, headers=headers
            ) as response:
                caller.answer = await response.text()
                assert response.status == 201, caller.answer
                assert response.content_type == "application/sdp"
                caller.location = response.headers["Location"]
        await connection.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
        async with asyncio.timeout(PATIENCE_S):
            await caller.opened.wait()
        yield caller
    finally:
        await caller.close()


def only(codec: str, offer: str) -> str:
    """Leave one codec in an offer's audio."""
    payload = {"pcmu": "0", "pcma": "8"}[codec]
    lines = []
    for line in offer.split("\r\n"):
        if line.startswith("m=audio"):
            line = f"{line[: line.index('SAVPF')]}SAVPF {payload}"
        kept = not line.startswith(("a=rtpmap:", "a=fmtp:", "a=rtcp-fb:"))
        if kept or line.startswith(f"a=rtpmap:{payload} "):
            lines.append(line)
    return "\r\n".join(lines)
