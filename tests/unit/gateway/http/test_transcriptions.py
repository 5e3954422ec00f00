from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from duologue.codecs.containers.wav import wav_header
from tests.fakes.speech_gateway import SpeechGateway, error_of, speech_gateway
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps

WORDS = "hello again long"
PCM = beeps(WORDS)
FILE = wav_header(BEEP_RATE_HZ, len(PCM)) + PCM
SECONDS = len(PCM) / 2 / BEEP_RATE_HZ
PAUSE = bytes(2 * BEEP_RATE_HZ * 8)


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with speech_gateway(tmp_path) as gateway:
        yield gateway


async def test_json_is_what_a_client_gets_that_asks_for_nothing(server: SpeechGateway) -> None:
    answer = await server.hear(FILE)

    assert answer.status == 200
    assert await answer.json() == {
        "text": WORDS,
        "usage": {"type": "duration", "seconds": 1},
    }


async def test_text_is_the_text(server: SpeechGateway) -> None:
    answer = await server.hear(FILE, response_format="text")

    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert await answer.text() == f"{WORDS}\n"


@pytest.mark.parametrize(
    ("form", "first"),
    [("srt", "1\n00:00:00,000 --> 00:00:00,"), ("vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:00.")],
)
async def test_subtitles(server: SpeechGateway, form: str, first: str) -> None:
    answer = await server.hear(FILE, response_format=form)

    text = await answer.text()
    assert text.startswith(first)
    assert WORDS in text


async def test_details(server: SpeechGateway) -> None:
    answer = await server.hear(FILE, response_format="verbose_json", temperature="0.2")

    page = await answer.json()
    assert page["task"] == "transcribe"
    assert page["language"] == "english"
    assert page["duration"] == pytest.approx(SECONDS, abs=0.01)
    assert page["text"] == WORDS
    assert "words" not in page
    (segment,) = page["segments"]
    assert segment["text"] == f" {WORDS}"
    assert segment["tokens"] == [0, 1, 2]
    assert (segment["avg_logprob"], segment["no_speech_prob"]) == (-0.25, 0.125)
    assert segment["temperature"] == 0.2


@pytest.mark.parametrize("name", ["timestamp_granularities[]", "timestamp_granularities"])
async def test_words_have_times(server: SpeechGateway, name: str) -> None:
    answer = await server.hear(FILE, (name, "word"), response_format="verbose_json")

    page = await answer.json()
    assert [word["word"] for word in page["words"]] == WORDS.split()
    assert page["words"][1]["start"] == pytest.approx(0.28, abs=0.02)
    assert page["words"][1]["end"] == pytest.approx(0.52, abs=0.02)
    assert "segments" not in page


async def test_words_and_segments_may_both_be_asked_for(server: SpeechGateway) -> None:
    both = [("timestamp_granularities[]", name) for name in ("word", "segment")]

    page = await (await server.hear(FILE, *both, response_format="verbose_json")).json()

    assert page["words"]
    assert page["segments"]


async def test_how_sure_the_recogniser_is(server: SpeechGateway) -> None:
    page = await (await server.hear(FILE, ("include[]", "logprobs"))).json()

    assert "".join(each["token"] for each in page["logprobs"]).strip() == WORDS
    assert page["logprobs"][0]["logprob"] == pytest.approx(-0.6931)
    assert bytes(page["logprobs"][0]["bytes"]) == b" hello"


async def test_events_come_while_the_file_is_heard(server: SpeechGateway) -> None:
    long = PCM + PAUSE + PCM + PAUSE + PCM
    answer = await server.hear(wav_header(BEEP_RATE_HZ) + long, stream="true", model="whisper-1")

    assert answer.headers["Content-Type"].startswith("text/event-stream")
    lines = [line for line in (await answer.text()).splitlines() if line.startswith("data: ")]
    events: list[dict[str, Any]] = [json.loads(line.removeprefix("data: ")) for line in lines]
    *deltas, done = events
    assert [event["type"] for event in deltas] == ["transcript.text.delta"] * 2
    assert done["type"] == "transcript.text.done"
    assert "".join(event["delta"] for event in deltas) == done["text"] == " ".join([WORDS] * 3)
    usage = done["usage"]
    assert usage["type"] == "tokens"
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_token_details"]["audio_tokens"] >= 160


async def test_fields_that_are_not_known_here_are_ignored(server: SpeechGateway) -> None:
    answer = await server.hear(
        FILE,
        ("chunking_strategy[type]", "server_vad"),
        ("languages[]", "fr"),
        ("languages[]", "en"),
        ("keywords[]", "Dashwood"),
        ("known_speaker_names[]", "me"),
        model="gpt-4o-transcribe",
    )

    assert (await answer.json())["text"] == WORDS


@pytest.mark.parametrize(
    ("fields", "status", "code", "param"),
    [
        ({"language": "de"}, 400, "invalid_value", "language"),
        ({"response_format": "diarized_json"}, 400, "unsupported", "response_format"),
        ({"response_format": "xml"}, 400, "invalid_value", "response_format"),
        ({"temperature": "1.5"}, 400, "invalid_value", "temperature"),
        ({"temperature": "warm"}, 400, "invalid_value", "temperature"),
        ({"stream": "perhaps"}, 400, "invalid_value", "stream"),
        ({"stream": "true", "response_format": "srt"}, 400, "invalid_value", "stream"),
        ({"include[]": "everything"}, 400, "invalid_value", "include"),
        ({"include[]": "logprobs", "response_format": "text"}, 400, "invalid_value", "include"),
        (
            {"timestamp_granularities[]": "word"},
            400,
            "invalid_value",
            "timestamp_granularities",
        ),
        (
            {"timestamp_granularities[]": "phoneme", "response_format": "verbose_json"},
            400,
            "invalid_value",
            "timestamp_granularities",
        ),
        ({"prompt": "x" * 5000}, 400, "invalid_value", "prompt"),
        ({"model": "unheard-of"}, 404, "model_not_found", "model"),
        ({"route": "translations", "model": "whisper-1"}, 400, "unsupported", "model"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    server: SpeechGateway, fields: dict[str, str], status: int, code: str, param: str
) -> None:
    answer = await server.hear(FILE, **fields)

    assert await error_of(answer) == (status, code, param)
    assert server.work == 0


async def test_another_body_is_refused(server: SpeechGateway) -> None:
    answer = await server.http.post("/v1/audio/transcriptions", json={"file": "speech.wav"})

    assert (await error_of(answer))[0] in (400, 415)
