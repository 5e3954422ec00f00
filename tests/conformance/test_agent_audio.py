"""Speech and transcription as agent frameworks ask for them, without the frameworks.

What they send and how they read the answers is theirs; the packages themselves run in ``make
conformance``.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import av
import pytest
import pytest_asyncio

from duologue.codecs.containers.wav import wav_header
from duologue.sessions.dialogue.plugin_config import OPENAI_VOICES
from tests.fakes.speech_gateway import SpeechGateway, speech_gateway
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps

BINARY = {"Accept": "application/octet-stream"}
PCM = beeps("hello again")
WAV = wav_header(BEEP_RATE_HZ, len(PCM)) + PCM
TEXT = "I can help you with that. What would you like to know?"


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with speech_gateway(tmp_path) as gateway:
        yield gateway


async def test_c69_livekits_voice_takes_events_or_bytes_by_their_content_type(
    server: SpeechGateway,
) -> None:
    asked = {
        "input": TEXT,
        "model": "gpt-4o-mini-tts",
        "voice": "ash",
        "instructions": "Speak kindly.",
        "response_format": "mp3",
        "speed": 1.0,
        "stream_format": "sse",
    }
    sound = b""
    is_done = False
    async with server.http.post("/v1/audio/speech", json=asked, headers=BINARY) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        async for raw in answer.content:
            line = raw.decode().strip()
            if not line.startswith("data:"):
                continue
            event = json.loads(line.removeprefix("data:"))
            if event["type"] == "speech.audio.delta":
                sound += base64.b64decode(event["audio"])
            elif event["type"] == "speech.audio.done":
                assert {"input_tokens", "output_tokens", "total_tokens"} <= event["usage"].keys()
                is_done = True
    assert is_done
    with av.open(io.BytesIO(sound)) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 10_000

    del asked["stream_format"], asked["instructions"]
    async with server.http.post(
        "/v1/audio/speech", json={**asked, "model": "tts-1"}, headers=BINARY
    ) as answer:
        assert answer.content_type == "audio/mpeg"
        assert await answer.read()


async def test_c69_livekit_warms_its_connection_with_a_request_for_nothing(
    server: SpeechGateway,
) -> None:
    async with server.http.get("/v1/") as answer:
        assert answer.status == 404
        assert answer.content_type == "application/json"


async def test_c69_livekits_recogniser_asks_for_words(server: SpeechGateway) -> None:
    answer = await server.hear(
        WAV,
        ("timestamp_granularities[]", "word"),
        model="whisper-1",
        language="en",
        response_format="verbose_json",
    )

    page = await answer.json()
    assert page["text"] == "hello again"
    assert page["language"] == "english"
    assert [sorted(word) for word in page["words"]] == [["end", "start", "word"]] * 2


@pytest.mark.parametrize("voice", sorted(OPENAI_VOICES))
async def test_c69_pipecats_voice_reads_pcm_in_fixed_chunks(
    server: SpeechGateway, voice: str
) -> None:
    answer = await server.speak(TEXT, model="gpt-4o-mini-tts", voice=voice, response_format="pcm")

    assert answer.status == 200
    sizes = [len(chunk) async for chunk in answer.content.iter_chunked(4800)]
    assert sum(sizes) % 2 == 0
    assert sum(sizes) > 10_000


async def test_c69_pipecats_recogniser_asks_for_json(server: SpeechGateway) -> None:
    answer = await server.hear(
        WAV,
        ("include[]", "logprobs"),
        model="gpt-4o-transcribe",
        language="en",
        prompt="A call.",
        response_format="json",
        temperature="0.0",
    )

    page = await answer.json()
    assert page["text"] == "hello again"
    assert len(page["logprobs"]) == 2


async def test_pages_of_other_origins_may_read_streamed_speech_where_they_are_allowed(
    server: SpeechGateway,
) -> None:
    own = f"http://127.0.0.1:{server.port}"
    async with server.http.post(
        "/v1/audio/speech", json={"input": TEXT}, headers={"Origin": own}
    ) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == own
        assert answer.status == 200
    async with server.http.post(
        "/v1/audio/speech", json={"input": TEXT}, headers={"Origin": "https://elsewhere.example"}
    ) as refused:
        assert refused.status == 403
