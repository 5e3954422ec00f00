"""OpenAI's own Python SDK holds a call; nothing but its base URL is not OpenAI's."""

from __future__ import annotations

import asyncio
import base64

import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from duologue.settings import Settings
from tests.conformance.official_caller import CHUNK_MS, official_call
from tests.conformance.talking_gateway import API_KEY, MODEL, talking_gateway, with_lead
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

QUIET = bytes(BEEP_RATE_HZ * 2)
"""A second of silence: the floor is free."""

SESSION = {
    "type": "realtime",
    "instructions": "Be kind.",
    "output_modalities": ["audio"],
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "gpt-4o-mini-transcribe"},
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
        },
        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "two"},
    },
}


def chunks(pcm: bytes) -> list[str]:
    size = BEEP_RATE_HZ * 2 * CHUNK_MS // 1000
    pieces = (pcm[start : start + size] for start in range(0, len(pcm), size))
    return [base64.b64encode(piece).decode() for piece in pieces]


async def test_a_call_as_the_documentation_of_the_sdk_writes_it(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
        asyncio.timeout(PATIENCE_S),
    ):
        assert (await connection.recv()).type == "session.created"
        await connection.session.update(session=SESSION)
        updated = await connection.recv()
        assert updated.type == "session.updated"
        assert updated.session.instructions == "Be kind."
        for audio in chunks(beeps("hello again") + QUIET):
            await connection.input_audio_buffer.append(audio=audio)
        said, heard, audio_bytes = "", "", 0
        async for event in connection:
            assert event.type != "error", event
            if event.type == "conversation.item.input_audio_transcription.completed":
                said = event.transcript
            elif event.type == "response.output_audio_transcript.delta":
                heard += event.delta
            elif event.type == "response.output_audio.delta":
                audio_bytes += len(base64.b64decode(event.delta))
            elif event.type == "response.done":
                assert event.response.status == "completed"
                break
        assert said == "hello again"
        assert heard == "Well, you said hello again."
        assert audio_bytes > BEEP_RATE_HZ * 2 * 200 // 1000
        await connection.close()


async def test_an_interruption_cuts_the_answer_and_the_next_one_is_whole(
    settings: Settings,
) -> None:
    # Else the whole answer is out long before it is heard, and its response is completed.
    settings = with_lead(settings, 500)
    async with (
        talking_gateway(settings) as gateway,
        official_call(gateway.http_url, API_KEY) as caller,
    ):
        conversation = caller.connection.conversation
        await caller.hear("session.created")
        await caller.connection.session.update(session=SESSION)
        await caller.hear("session.updated")
        await caller.say("long")
        first = await caller.hear("response.created")
        delta = await caller.hear("response.output_audio.delta")
        await caller.listen(1200)
        await caller.say("hello again")
        await caller.hear("input_audio_buffer.speech_started")
        cancelled = await caller.hear("response.done")
        assert cancelled["response"]["id"] == first["response"]["id"]
        assert cancelled["response"]["status"] == "cancelled"
        assert cancelled["response"]["status_details"]["reason"] == "turn_detected"
        item = {"item_id": delta["item_id"], "content_index": 0}
        await conversation.item.truncate(**item, audio_end_ms=700)
        completed = await caller.hear("response.done")
        assert completed["response"]["status"] == "completed"
        (answer,) = completed["response"]["output"]
        assert answer["content"][0]["transcript"] == "Well, you said hello again."
        cuts = caller.record.of("conversation.item.truncated")
        assert cuts[-1] | item | {"audio_end_ms": 700} == cuts[-1]
        came = caller.record.came
        behind = came[came.index(cancelled) + 1 :]
        assert [e for e in behind if e.get("response_id") == first["response"]["id"]] == []
        await conversation.item.retrieve(item_id=delta["item_id"])
        kept = (await caller.hear("conversation.item.retrieved"))["item"]
        assert kept["status"] == "incomplete"
        words = kept["content"][0]["transcript"]
        assert words.startswith("Well, you said long and so on")
        assert len(words) < 80


async def test_an_answer_in_writing(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        official_call(gateway.http_url, API_KEY, MODEL) as caller,
    ):
        connection = caller.connection
        created = await caller.hear("session.created")
        assert created["session"]["model"] == MODEL
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "hello"}],
            }
        )
        await connection.response.create()
        done = await caller.hear("response.done")
        assert done["response"]["output"][0]["content"] == [
            {"type": "output_text", "text": "Well, you said hello."}
        ]
        assert caller.record.of("response.output_audio.delta") == []


async def test_models_are_listed(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client,
    ):
        assert [model.id async for model in client.models.list()] == [MODEL]


async def test_errors_are_those_that_the_sdk_knows(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway:
        async with AsyncOpenAI(api_key="wrong", base_url=gateway.http_url) as client:
            with pytest.raises(AuthenticationError) as refused:
                await client.models.list()
            assert refused.value.code == "invalid_api_key"
            with pytest.raises(InvalidStatus) as closed:
                await client.realtime.connect(model="gpt-realtime").enter()
            assert closed.value.response.status_code == 401
        async with AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client:
            with pytest.raises(NotFoundError) as missing:
                await client.embeddings.create(model="m", input="x")
            assert missing.value.code == "unknown_url"


async def test_the_sdk_learns_why_the_server_ended_the_call(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
    ):
        await connection.recv()
        gateway.app.sessions.close_all("server_error")
        with pytest.raises(ConnectionClosedError) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011


async def test_c30_a_message_that_was_too_large_is_not_sent_again(settings: Settings) -> None:
    """Closed with 1009, the SDK gives up, although it was told to dial again."""
    door = settings.gateway.model_copy(update={"max_message_bytes": 20_000})
    dialled_again: list[object] = []
    async with (
        talking_gateway(settings.model_copy(update={"gateway": door})) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url) as client,
        client.realtime.connect(
            model="gpt-realtime", on_reconnecting=dialled_again.append
        ) as connection,
        asyncio.timeout(PATIENCE_S),
    ):
        assert (await connection.recv()).type == "session.created"
        audio = base64.b64encode(bytes(20_000)).decode()
        await connection.input_audio_buffer.append(audio=audio)
        with pytest.raises(ConnectionClosedError) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        assert "20000" in closed.value.rcvd.reason
        assert dialled_again == []
