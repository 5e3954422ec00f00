"""A caller at Twilio's end: sends 20 ms of sound in real time, plays what comes, answers marks.

It plays as a telephone does: one timeline at the rate of the line, from what has arrived. A mark is
answered when the sound before it has been played, or has been cleared.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import websockets

from duologue.codecs.g711 import decode_ulaw, encode_ulaw
from duologue.codecs.resample import StreamResampler

FRAME_S = 0.020
FRAME_BYTES = 160
SILENCE = b"\xff" * FRAME_BYTES


class PhoneCaller:
    """One call."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self._socket = socket
        self._chunk = 0
        self._to_say: deque[bytes] = deque()
        self._to_play: deque[bytes | str] = deque()
        self.stream_sid = "MZ0123"
        self.heard = bytearray()
        """What was played, mu-law, silence included."""
        self.received: list[dict[str, Any]] = []
        self.cleared_at: list[int] = []
        """How much had been played at each clear, in bytes."""
        self.buffered_at_clear: list[int] = []
        """What lay here then, in bytes, but for what a busy machine has not played in time."""

        self.most_buffered = 0
        """What lay here at most, counted in the same way."""

        self._tick: float | None = None
        self.news = asyncio.Event()

    async def begin(self, parameters: Mapping[str, str]) -> None:
        """Say what the call is."""
        await self._send({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        await self._send(
            {
                "event": "start",
                "sequenceNumber": "1",
                "streamSid": self.stream_sid,
                "start": {
                    "streamSid": self.stream_sid,
                    "accountSid": "AC0123",
                    "callSid": "CA0123",
                    "tracks": ["inbound"],
                    "customParameters": dict(parameters),
                    "mediaFormat": {
                        "encoding": "audio/x-mulaw",
                        "sampleRate": 8000,
                        "channels": 1,
                    },
                },
            }
        )

    def say(self, pcm_24khz: bytes) -> None:
        """Speak; the sound goes out in real time."""
        line = encode_ulaw(StreamResampler(24_000, 8_000).process(pcm_24khz))
        for start in range(0, len(line), FRAME_BYTES):
            self._to_say.append(line[start : start + FRAME_BYTES].ljust(FRAME_BYTES, b"\xff"))

    async def press(self, key: str) -> None:
        """Press a key."""
        await self._send({"event": "dtmf", "dtmf": {"track": "inbound_track", "digit": key}})

    async def hang_up(self) -> None:
        """End the call, as Twilio does: it says so and closes."""
        await self._send({"event": "stop", "stop": {"callSid": "CA0123"}})
        await self._socket.close()

    async def until(self, what: Any) -> None:
        """Wait until something is true of this caller."""
        while not what():
            self.news.clear()
            await self.news.wait()

    def heard_pcm(self, start: int = 0, end: int | None = None) -> bytes:
        """What was played between two positions, as s16le at 8 kHz."""
        return decode_ulaw(bytes(self.heard[start:end]))

    async def speak_and_play(self) -> None:
        """The line's clock: 20 ms after 20 ms, both ways."""
        loop = asyncio.get_running_loop()
        self._tick = loop.time()
        while True:
            said = self._to_say.popleft() if self._to_say else SILENCE
            self._chunk += 1
            media = {
                "track": "inbound",
                "chunk": str(self._chunk),
                "timestamp": str(self._chunk * 20),
                "payload": base64.b64encode(said).decode(),
            }
            await self._send({"event": "media", "media": media})
            await self._play_frame()
            self.news.set()
            self._tick += FRAME_S
            await asyncio.sleep(max(0.0, self._tick - loop.time()))

    async def listen(self) -> None:
        """Take what the server sends."""
        async for text in self._socket:
            message = json.loads(text)
            self.received.append(message)
            assert message["streamSid"] == self.stream_sid
            match message["event"]:
                case "media":
                    self._to_play.append(base64.b64decode(message["media"]["payload"]))
                    ahead = self._buffered() - self._overdue()
                    self.most_buffered = max(self.most_buffered, ahead)
                case "mark":
                    self._to_play.append(message["mark"]["name"])
                case "clear":
                    self.cleared_at.append(len(self.heard))
                    self.buffered_at_clear.append(self._buffered() - self._overdue())
                    marks = [item for item in self._to_play if isinstance(item, str)]
                    self._to_play.clear()
                    for name in marks:
                        await self._mark(name)
                case other:
                    raise AssertionError(other)
            self.news.set()

    async def _play_frame(self) -> None:
        await self._pass_marks()
        self.heard += self._to_play.popleft() if self._to_play else SILENCE
        await self._pass_marks()

    async def _pass_marks(self) -> None:
        while self._to_play and isinstance(self._to_play[0], str):
            await self._mark(str(self._to_play.popleft()))

    def _buffered(self) -> int:
        return sum(len(item) for item in self._to_play if isinstance(item, bytes))

    def _overdue(self) -> int:
        """How many bytes should have been played by now."""
        late_s = 0.0 if self._tick is None else asyncio.get_running_loop().time() - self._tick
        return FRAME_BYTES * max(0, int(late_s / FRAME_S))

    async def _mark(self, name: str) -> None:
        await self._send({"event": "mark", "mark": {"name": name}})

    async def _send(self, message: Mapping[str, Any]) -> None:
        with suppress(websockets.ConnectionClosed):
            await self._socket.send(json.dumps({"streamSid": self.stream_sid, **message}))


@asynccontextmanager
async def phone_call(
    url: str, parameters: Mapping[str, str], headers: Mapping[str, str] | None = None
) -> AsyncIterator[PhoneCaller]:
    """Call; the line's clock runs meanwhile."""
    async with websockets.connect(
        url, additional_headers=headers, compression=None, ping_interval=None
    ) as socket:
        caller = PhoneCaller(socket)
        await caller.begin(parameters)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(caller.listen(), name="phone-ear"),
                group.create_task(caller.speak_and_play(), name="phone-clock"),
            ]
            yield caller
            for task in tasks:
                task.cancel()
