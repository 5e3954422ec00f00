"""A caller for measurements: one Realtime call over WebSocket with a paced microphone.

Independent of Duologue's own client, so that a fault there cannot hide one of the server. Speaks
the GA dialect. Every message is stamped on arrival; the microphone runs on a schedule fixed when
the call opens, so the moment at which each sample was "said" is known exactly.
"""

import asyncio
import base64
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from speech import Floats, first_audible_s, from_pcm16, pcm16
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

SAMPLE_RATE_HZ = 24_000
FRAME_S = 0.02
FRAME_SAMPLES = int(FRAME_S * SAMPLE_RATE_HZ)
ROOM_NOISE = 2e-4
MAX_CLIP_FRAMES = 3000

EXPECTED_CLOSE = (ConnectionClosed, OSError)


@dataclass
class Answer:
    """One response as it arrived. Times are seconds of the monotonic clock."""

    response_id: str
    created_s: float
    deltas: list[tuple[float, bytes]] = field(default_factory=list)
    text: str = ""
    first_text_s: float | None = None
    done_s: float | None = None
    status: str = "in_progress"

    @property
    def audio(self) -> Floats:
        return from_pcm16(b"".join(pcm for _, pcm in self.deltas))

    @property
    def first_audio_s(self) -> float | None:
        return self.deltas[0][0] if self.deltas else None

    @property
    def audio_s(self) -> float:
        return sum(len(pcm) for _, pcm in self.deltas) / 2 / SAMPLE_RATE_HZ

    def playback_end_s(self) -> float:
        """When a client that plays at once has played what came: it starts with the first delta
        and waits whenever the next one is late."""
        end = 0.0
        for arrived, pcm in self.deltas:
            end = max(end, arrived) + len(pcm) / 2 / SAMPLE_RATE_HZ
        return end

    def first_audible_s(self) -> float | None:
        """When that client's loudspeaker makes the first audible sample."""
        end = 0.0
        for arrived, pcm in self.deltas:
            start = max(end, arrived)
            if (offset := first_audible_s(from_pcm16(pcm), SAMPLE_RATE_HZ)) is not None:
                return start + offset
            end = start + len(pcm) / 2 / SAMPLE_RATE_HZ
        return None


@dataclass(frozen=True)
class Arrival:
    """One message of the server."""

    at_s: float
    type: str
    event: dict[str, Any]


class Call:
    """An open call; see `open_call`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.arrivals: list[Arrival] = []
        self.answers: dict[str, Answer] = {}
        self.closed = False
        self._socket = socket
        self._news = asyncio.Event()
        self._clip: deque[Floats] = deque(maxlen=MAX_CLIP_FRAMES)
        self._start_s = 0.0
        self._frames_sent = 0
        self._noise = np.random.default_rng(0)

    def say(self, audio: Floats) -> float:
        """Speak into the microphone from the next frame on.

        Returns:
            The moment at which the first sample is said.
        """
        padded = np.pad(audio, (0, -len(audio) % FRAME_SAMPLES))
        frames = padded.reshape(-1, FRAME_SAMPLES)
        if len(self._clip) + len(frames) > MAX_CLIP_FRAMES:
            raise ValueError(f"a clip of {len(frames)} frames, the limit is {MAX_CLIP_FRAMES}")
        start_frame = self._frames_sent + len(self._clip)
        self._clip.extend(frames)
        return self._start_s + start_frame * FRAME_S

    async def wait_until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Wait for a condition on what arrived; False when the time is over or the call ended."""
        try:
            async with asyncio.timeout(limit_s):
                while not condition():
                    if self.closed:
                        return False
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def since(self, at_s: float, event_type: str) -> list[Arrival]:
        """Messages of one type that came after a moment, in order."""
        return [a for a in self.arrivals if a.at_s >= at_s and a.type == event_type]

    async def send(self, event: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(event))

    async def run_microphone(self) -> None:
        """Send a frame when its last sample has been said, for ever."""
        self._start_s = time.monotonic()
        try:
            while True:
                due = self._start_s + (self._frames_sent + 1) * FRAME_S
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                frame = self._noise.normal(0, ROOM_NOISE, FRAME_SAMPLES)
                if self._clip:
                    frame = frame + self._clip.popleft()
                self._frames_sent += 1
                audio = base64.b64encode(pcm16(frame.astype(np.float32))).decode()
                await self.send({"type": "input_audio_buffer.append", "audio": audio})
        except EXPECTED_CLOSE:
            self._end()

    async def run_receiver(self) -> None:
        try:
            async for message in self._socket:
                self._on_event(time.monotonic(), json.loads(message))
        except EXPECTED_CLOSE:
            pass
        self._end()

    def _on_event(self, now: float, event: dict[str, Any]) -> None:
        self.arrivals.append(Arrival(now, event["type"], event))
        match event["type"]:
            case "response.created":
                response_id = event["response"]["id"]
                self.answers[response_id] = Answer(response_id, now)
            case "response.output_audio.delta":
                pcm = base64.b64decode(event["delta"])
                self.answers[event["response_id"]].deltas.append((now, pcm))
            case "response.output_audio_transcript.delta":
                answer = self.answers[event["response_id"]]
                answer.first_text_s = answer.first_text_s or now
                answer.text += event["delta"]
            case "response.output_audio_transcript.done":
                self.answers[event["response_id"]].text = event["transcript"]
            case "response.done":
                answer = self.answers[event["response"]["id"]]
                answer.done_s, answer.status = now, event["response"]["status"]
        self._news.set()

    def _end(self) -> None:
        self.closed = True
        self._news.set()


@asynccontextmanager
async def open_call(url: str, session: dict[str, Any] | None = None) -> AsyncIterator[Call]:
    """Open a call and keep its microphone running.

    Args:
        session: Merged into the server's defaults by a `session.update`.
    """
    async with connect(url, compression=None, max_size=4 << 20, max_queue=None) as socket:
        call = Call(socket)
        async with asyncio.TaskGroup() as group:
            receiver = group.create_task(call.run_receiver(), name="receiver")
            if not await call.wait_until(lambda: _has(call, "session.created"), 10.0):
                raise RuntimeError("no session.created within 10 s")
            if session is not None:
                await call.send({"type": "session.update", "session": session})
                if not await call.wait_until(lambda: _has(call, "session.updated"), 10.0):
                    raise RuntimeError(f"no session.updated within 10 s: {call.arrivals[-1]}")
            microphone = group.create_task(call.run_microphone(), name="microphone")
            await asyncio.sleep(0)
            try:
                yield call
            finally:
                microphone.cancel()
                receiver.cancel()


def _has(call: Call, event_type: str) -> bool:
    return any(arrival.type == event_type for arrival in call.arrivals)
