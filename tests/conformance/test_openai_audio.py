"""OpenAI's own Python SDK speaks and listens over HTTP; nothing but its base URL is another."""

from __future__ import annotations

import base64
import io
import json

import av
import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.audio import (
    Transcription,
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionVerbose,
)

from duologue.codecs.containers.wav import HEADER_BYTES, wav_header
from duologue.settings import Settings
from tests.conformance.node_clients import seen_by
from tests.conformance.talking_gateway import API_KEY, MODEL, talking_gateway
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps

WORDS = "hello again"
PCM = beeps(WORDS)
WAV = wav_header(BEEP_RATE_HZ, len(PCM)) + PCM
TEXT = "This is a sentence. And this is another one, which is longer."


def client_of(base_url: str) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=API_KEY, base_url=base_url, max_retries=0)


def named(data: bytes, name: str) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = name
    return file


async def test_speech_as_a_file(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        answer = await client.audio.speech.create(model="tts-1", voice="alloy", input=TEXT)

    with av.open(io.BytesIO(answer.content)) as file:
        assert file.format.name == "mp3"
        assert sum(frame.samples for frame in file.decode(audio=0)) > 10_000


async def test_speech_as_a_stream(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        client_of(gateway.http_url) as client,
        client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts",
            voice={"id": "two"},
            input=TEXT,
            instructions="Be calm.",
            response_format="wav",
            speed=1.25,
        ) as answer,
    ):
        assert answer.headers["content-type"] == "audio/wav"
        data = b"".join([chunk async for chunk in answer.iter_bytes(1024)])

    assert data[:HEADER_BYTES] == wav_header(24_000)
    assert len(data) > 10_000


async def test_speech_as_events(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        client_of(gateway.http_url) as client,
        client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts",
            voice="marin",
            input=TEXT,
            response_format="pcm",
            stream_format="sse",
        ) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in answer.iter_lines()]

    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data:")]
    *deltas, done = events
    assert all(base64.b64decode(event["audio"]) for event in deltas)
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["output_tokens"] > 0


async def test_a_refusal_is_the_sdks_own_error(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        with pytest.raises(BadRequestError) as refused:
            await client.audio.speech.create(model="tts-1", voice="karl", input=TEXT)
        assert refused.value.param == "voice"
        with pytest.raises(BadRequestError) as refused:
            await client.audio.transcriptions.create(model="whisper-1", file=named(b"", "a.wav"))
        assert refused.value.code == "undecodable_audio"


async def test_transcription(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        plain = await client.audio.transcriptions.create(
            model="gpt-4o-transcribe", file=named(WAV, "a.wav"), include=["logprobs"]
        )
        text = await client.audio.transcriptions.create(
            model="whisper-1", file=("b.wav", WAV, "audio/wav"), response_format="text"
        )
        subtitles = await client.audio.transcriptions.create(
            model="whisper-1", file=named(WAV, "a.wav"), response_format="srt"
        )

    assert isinstance(plain, Transcription)
    assert plain.text == WORDS
    assert plain.usage is not None
    assert plain.logprobs is not None
    assert [each.token for each in plain.logprobs] == [" hello", " again"]
    assert str(text).strip() == WORDS
    assert str(subtitles).startswith("1\n00:00:00,000")


async def test_transcription_with_details(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        detailed = await client.audio.transcriptions.create(
            model="whisper-1",
            file=named(WAV, "a.wav"),
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
            language="en",
            prompt="Hello.",
            temperature=0,
        )

    assert isinstance(detailed, TranscriptionVerbose)
    assert detailed.text == WORDS
    assert isinstance(detailed.duration, float)
    assert [word.word for word in detailed.words or []] == WORDS.split()
    (segment,) = detailed.segments or []
    assert segment.text.strip() == WORDS


async def test_transcription_as_events(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        stream = await client.audio.transcriptions.create(
            model="gpt-4o-mini-transcribe", file=named(WAV, "a.wav"), stream=True
        )
        events = [event async for event in stream]

    *deltas, done = events
    assert all(isinstance(event, TranscriptionTextDeltaEvent) for event in deltas)
    assert isinstance(done, TranscriptionTextDoneEvent)
    assert done.text == WORDS
    assert done.usage is not None
    assert done.usage.total_tokens > 0


async def test_a_translation_that_the_model_cannot_make(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway, client_of(gateway.http_url) as client:
        with (
            pytest.warns(DeprecationWarning, match="deprecated"),
            pytest.raises(BadRequestError) as refused,
        ):
            await client.audio.translations.create(model="whisper-1", file=named(WAV, "a.wav"))

    assert refused.value.code == "unsupported"


@pytest.mark.node
async def test_the_sdk_for_node_has_a_text_spoken_and_written_down(settings: Settings) -> None:
    async with talking_gateway(settings) as gateway:
        asked = (gateway.http_url, API_KEY, MODEL, "two", TEXT)
        seen = await seen_by("audio.mjs", *asked)
    wav, pcm = base64.b64decode(seen["wav"]), base64.b64decode(seen["pcm"])
    assert wav[HEADER_BYTES:] == pcm
    assert len(pcm) > 20_000
    assert seen["kind"] == "audio/wav"
    assert seen["refused"] == [400, "voice"]
    assert isinstance(seen["text"], str)
