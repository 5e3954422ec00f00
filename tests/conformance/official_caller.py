"""A caller who uses OpenAI's own SDK, speaks in beeps, and keeps a record of all that crossed."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from openai import AsyncOpenAI
from openai.resources.beta.realtime.realtime import (
    AsyncRealtimeConnection as AsyncBetaConnection,
)
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from tests.conformance.sdk_schema import BETA, GA, SdkSchema
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

CHUNK_MS = 100
_CHUNK_BYTES = BEEP_RATE_HZ * 2 * CHUNK_MS // 1000

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """One event of the record."""

    direction: Literal["sent", "came"]
    event: Event
    raw: bytes

    @property
    def type(self) -> str:
        return str(self.event["type"])


@dataclass
class Record:
    """All events of a call, both ways, in the order in which the client saw them."""

    lines: list[Line] = field(default_factory=list)

    @property
    def came(self) -> list[Event]:
        return [line.event for line in self.lines if line.direction == "came"]

    def of(self, *types: str) -> list[Event]:
        """Events from the server of these types."""
        return [event for event in self.came if event["type"] in types]

    def sent(self, type_: str) -> list[Event]:
        """Events from the client of a type."""
        return [x.event for x in self.lines if x.direction == "sent" and x.type == type_]

    def answers_to(self, event_id: str) -> list[Event]:
        """What came between a client's event and its next one."""
        events: list[Event] = []
        found = False
        for line in self.lines:
            if line.direction == "sent":
                if found and line.type != "input_audio_buffer.append":
                    return events
                found = found or line.event.get("event_id") == event_id
            elif found:
                events.append(line.event)
        return events


class OfficialCaller:
    """One call. Every event that comes is held against the SDK's own classes."""

    def __init__(
        self, connection: AsyncRealtimeConnection | AsyncBetaConnection, schema: SdkSchema
    ) -> None:
        self.connection: Any = connection
        self.schema = schema
        self.record = Record()
        self._news = asyncio.Event()
        self._heard = 0
        self._forever: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self) -> None:
        """Take everything until the server ends the call."""
        while True:
            raw = await self.connection.recv_bytes()
            self.schema.check(raw)
            self.record.lines.append(Line("came", json.loads(raw), raw))
            self._news.set()

    async def send(self, **event: Any) -> None:
        """Send any event as the SDK writes it."""
        self.record.lines.append(Line("sent", event, b""))
        await self.connection.send(event)

    async def hear(self, *types: str) -> Event:
        """Wait for the next event of these types, behind the one that was heard last."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for index, event in enumerate(self.record.came[self._heard :], self._heard):
                    if event["type"] in types:
                        self._heard = index + 1
                        return event
                self._news.clear()
                await self._news.wait()

    async def beep(self, text: str) -> None:
        """Say words, and do not stop talking."""
        await self._append(beeps(text))

    async def say(self, text: str) -> None:
        """Say words, and leave the floor."""
        await self._append(beeps(text) + bytes(BEEP_RATE_HZ * 2))

    async def speak(self, text: str) -> None:
        """Say words, and leave the floor, at the pace of a microphone."""
        await self.speak_pcm(beeps(text))

    async def speak_pcm(self, pcm: bytes) -> None:
        """Say what was recorded, s16le at 24 kHz, as ``speak`` does."""
        await self._append(pcm + bytes(BEEP_RATE_HZ * 2), CHUNK_MS / 1000)

    async def listen(self, duration_ms: int) -> None:
        """Say nothing for a while, at the pace of a microphone."""
        chunks = duration_ms // CHUNK_MS
        await self._append(bytes(chunks * _CHUNK_BYTES), CHUNK_MS / 1000)

    async def _append(self, pcm: bytes, pause_s: float | None = None) -> None:
        for start in range(0, len(pcm), _CHUNK_BYTES):
            audio = base64.b64encode(pcm[start : start + _CHUNK_BYTES]).decode()
            await self.send(type="input_audio_buffer.append", audio=audio)
            if pause_s is not None:
                await asyncio.wait((self._forever,), timeout=pause_s)


@asynccontextmanager
async def official_call(
    http_url: str,
    api_key: str,
    model: str = "gpt-realtime",
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, object] | None = None,
) -> AsyncIterator[OfficialCaller]:
    """Hold a call with ``client.realtime``, of which only the base URL is not OpenAI's.

    Args:
        headers: More of them; one may ask for the beta dialect.
    """
    schema = BETA if "OpenAI-Beta" in (headers or {}) else GA
    async with (
        AsyncOpenAI(api_key=api_key, base_url=http_url) as client,
        client.realtime.connect(
            model=model, extra_headers=dict(headers or {}), extra_query=dict(query or {})
        ) as connection,
        _read(OfficialCaller(connection, schema)) as caller,
    ):
        yield caller


@asynccontextmanager
async def beta_call(
    http_url: str, api_key: str, model: str = "gpt-4o-realtime-preview"
) -> AsyncIterator[OfficialCaller]:
    """Hold a call with ``client.beta.realtime``; its base URL would always be wss."""
    ws_url = http_url.replace("http:", "ws:")
    async with (
        AsyncOpenAI(api_key=api_key, base_url=http_url, websocket_base_url=ws_url) as client,
        client.beta.realtime.connect(model=model) as connection,
        _read(OfficialCaller(connection, BETA)) as caller,
    ):
        yield caller


@asynccontextmanager
async def _read(caller: OfficialCaller) -> AsyncIterator[OfficialCaller]:
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(caller.read(), name="official-caller")
        yield caller
        reading.cancel()
