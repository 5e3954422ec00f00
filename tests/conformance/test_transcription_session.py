"""Sessions that only listen, over a real connection, with OpenAI's own SDK and its typed events.

The sequences are those of livekit's and pipecat's speech-to-text.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.realtime import (
    RealtimeServerEvent,
    SessionCreatedEvent,
    SessionUpdatedEvent,
)
from pydantic import TypeAdapter
from websockets.exceptions import InvalidStatus

from duologue.settings import Settings
from tests.conformance.talking_gateway import API_KEY, talking_gateway
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

QUIET = bytes(BEEP_RATE_HZ * 2)
EVENTS: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)

SERVER_VAD = {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 350}


def only_listen(turn_detection: object) -> dict[str, Any]:
    return {
        "type": "transcription",
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
                "turn_detection": turn_detection,
            }
        },
    }


@asynccontextmanager
async def listening(settings: Settings, detection: object) -> AsyncIterator[Any]:
    """A connection that has been told to listen only."""
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client,
        client.realtime.connect(extra_query={"intent": "transcription"}) as connection,
        asyncio.timeout(PATIENCE_S),
    ):
        created = await connection.recv()
        assert isinstance(created, SessionCreatedEvent)
        assert created.session.type == "transcription"
        await connection.session.update(session=only_listen(detection))
        updated = await connection.recv()
        assert isinstance(updated, SessionUpdatedEvent)
        assert updated.session.audio.input.transcription.model == "gpt-4o-transcribe"
        yield connection
        await connection.close()


async def send(connection: Any, pcm: bytes, ms: int) -> None:
    size = BEEP_RATE_HZ * 2 * ms // 1000
    for start in range(0, len(pcm), size):
        piece = base64.b64encode(pcm[start : start + size]).decode()
        await connection.input_audio_buffer.append(audio=piece)


async def until_completed(connection: Any) -> list[Any]:
    """Every event up to the transcript, each held against the SDK's own type of it."""
    events = []
    while True:
        event = await connection.recv()
        EVENTS.validate_python(event.to_dict(), strict=False)
        assert event.type != "error", event
        assert not event.type.startswith("response.")
        events.append(event)
        if event.type == "conversation.item.input_audio_transcription.completed":
            return events


async def test_with_a_detector_of_the_server(settings: Settings) -> None:
    async with listening(settings, SERVER_VAD) as connection:
        for words in ("hello again", "weather long"):
            await send(connection, beeps(words) + QUIET, 50)
            events = await until_completed(connection)
            kinds = [event.type for event in events]
            assert kinds[0] == "input_audio_buffer.speech_started"
            stopped = kinds.index("input_audio_buffer.speech_stopped")
            assert kinds[stopped + 1] == "input_audio_buffer.committed"
            deltas = "".join(event.delta for event in events if event.type.endswith("on.delta"))
            assert events[-1].transcript == deltas == words
            assert events[-1].usage.type == "duration"


async def test_with_commits_by_hand(settings: Settings) -> None:
    async with listening(settings, None) as connection:
        await send(connection, beeps("hello again"), 20)
        await connection.input_audio_buffer.commit()
        events = await until_completed(connection)
        assert events[0].type == "input_audio_buffer.committed"
        assert events[-1].transcript == "hello again"


async def test_a_wrong_key_is_refused_before_anything_is_heard(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway:
        client = AsyncOpenAI(api_key="wrong", base_url=gateway.http_url)
        with pytest.raises(InvalidStatus) as refusal:
            async with client.realtime.connect(extra_query={"intent": "transcription"}):
                pass
        assert refusal.value.response.status_code == 401
        await client.close()
