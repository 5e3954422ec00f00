from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import pytest
import pytest_asyncio

from duologue.codecs.containers import CONTENT_TYPES, OutputFormat
from duologue.codecs.containers.wav import HEADER_BYTES, wav_header
from duologue.gateway.http.settings import HttpSettings
from tests.fakes.speech_gateway import MS_PER_CHARACTER, SpeechGateway, error_of, speech_gateway

TEXT = "Hello there, this is a voice. It goes on for a while, and then it is silent."
RATE_HZ = 24_000


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with speech_gateway(tmp_path, HttpSettings(max_speech_chars=200)) as gateway:
        yield gateway


def seconds_of(data: bytes) -> float:
    with av.open(io.BytesIO(data)) as file:
        rate = file.streams.audio[0].rate
        return sum(frame.samples for frame in file.decode(audio=0)) / rate


def events_of(body: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("audio_format", OutputFormat)
async def test_each_format_is_a_file_of_its_kind(
    server: SpeechGateway, audio_format: OutputFormat
) -> None:
    answer = await server.speak(TEXT, response_format=audio_format, model="tts-1", voice="alloy")

    data = await answer.read()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == CONTENT_TYPES[audio_format]
    assert answer.headers["Transfer-Encoding"] == "chunked"
    raw = audio_format is OutputFormat.PCM
    seconds = len(data) / 2 / RATE_HZ if raw else seconds_of(data)
    # The blanks between clauses are not spoken.
    assert seconds == pytest.approx(len(TEXT) * MS_PER_CHARACTER / 1000, abs=0.12)


async def test_mp3_is_what_a_client_gets_that_asks_for_nothing(server: SpeechGateway) -> None:
    answer = await server.speak()

    assert answer.headers["Content-Type"] == "audio/mpeg"


async def test_events_carry_the_file_and_end_with_its_usage(server: SpeechGateway) -> None:
    answer = await server.speak(TEXT, stream_format="sse", response_format="mp3")

    assert answer.headers["Content-Type"].startswith("text/event-stream")
    events = events_of(await answer.text())
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert len(deltas) > 2
    assert seconds_of(b"".join(base64.b64decode(event["audio"]) for event in deltas)) > 0.6
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens"] == 19
    assert usage["output_tokens"] > 10


async def test_without_streaming_the_length_is_known(server: SpeechGateway) -> None:
    answer = await server.speak(TEXT, response_format="wav", stream=False)

    data = await answer.read()
    assert int(answer.headers["Content-Length"]) == len(data)
    assert data[:HEADER_BYTES] == wav_header(RATE_HZ, len(data) - HEADER_BYTES)


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
async def test_c73_every_speed_is_reached(server: SpeechGateway, speed: float) -> None:
    usual = len(await (await server.speak(TEXT, response_format="pcm")).read())

    pcm = await (await server.speak(TEXT, response_format="pcm", speed=speed)).read()

    # The scripted voice takes no notice of speed, so only what it cannot do by itself shows.
    own = min(max(speed, 0.5), 2.0)
    assert len(pcm) == pytest.approx(usual * own / speed, rel=0.1)


async def test_two_requests_fit_on_one_connection(server: SpeechGateway) -> None:
    first = await server.speak(response_format="pcm")
    await first.read()
    assert first.connection is None  # back in the pool

    assert (await (await server.speak(response_format="pcm")).read()) != b""


async def test_what_says_nothing_is_a_short_silence(server: SpeechGateway) -> None:
    pcm = await (await server.speak("... --- ...", response_format="pcm")).read()
    whole = await (await server.speak("...", response_format="wav", stream=False)).read()

    assert len(pcm) == RATE_HZ * 2 // 10
    assert pcm.strip(b"\0") == b""
    assert seconds_of(whole) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"input": ""}, 400, "invalid_value", "input"),
        ({"input": " \n "}, 400, "invalid_value", "input"),
        ({}, 400, "missing_required_parameter", "input"),
        ({"input": 7}, 400, "invalid_value", "input"),
        ({"input": "x" * 201}, 400, "invalid_value", "input"),
        ({"input": "x" * 100_000}, 400, "invalid_value", "input"),
        ({"input": "Hi.", "voice": "karl"}, 400, "invalid_value", "voice"),
        ({"input": "Hi.", "voice": {"id": "karl"}}, 400, "invalid_value", "voice"),
        ({"input": "Hi.", "voice": {"name": "one"}}, 400, "missing_required_parameter", "voice.id"),
        ({"input": "Hi.", "speed": 4.01}, 400, "invalid_value", "speed"),
        ({"input": "Hi.", "speed": "fast"}, 400, "invalid_value", "speed"),
        ({"input": "Hi.", "response_format": "ogg"}, 400, "invalid_value", "response_format"),
        ({"input": "Hi.", "stream_format": "file"}, 400, "invalid_value", "stream_format"),
        ({"input": "Hi.", "model": "unheard-of"}, 404, "model_not_found", "model"),
    ],
)
async def test_c73_what_cannot_be_spoken_is_refused(
    server: SpeechGateway, body: dict[str, object], status: int, code: str, param: str
) -> None:
    answer = await server.http.post("/v1/audio/speech", json=body)

    assert await error_of(answer) == (status, code, param)
    assert server.work == 0


async def test_unknown_fields_are_ignored_and_voices_may_be_objects(server: SpeechGateway) -> None:
    answer = await server.speak(voice={"id": "two"}, instructions="Softly.", seed=3, lang="en")

    assert answer.status == 200


async def test_a_key_is_needed(server: SpeechGateway) -> None:
    answer = await server.http.post(
        "/v1/audio/speech", json={"input": "Hi."}, headers={"Authorization": "Bearer wrong"}
    )

    assert (await error_of(answer))[:2] == (401, "invalid_api_key")


async def test_voices_are_listed_with_the_names_that_stock_clients_use(
    server: SpeechGateway,
) -> None:
    page = await (await server.http.get("/v1/audio/voices")).json()

    assert [card["id"] for card in page["data"]] == ["one", "two"]
    assert sum(len(card["aliases"]) for card in page["data"]) == 13
    assert page["voices"][:2] == ["one", "two"]
    assert {"alloy", "verse"} <= set(page["voices"])
