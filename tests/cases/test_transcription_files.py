"""C74: what people send to be written down, besides speech."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from duologue.codecs.containers import ACCEPTED_FORMATS
from duologue.gateway.http.settings import HttpSettings
from tests.fakes.sound_files import browser_file, file_of, tone
from tests.fakes.speech_gateway import SpeechGateway, error_of, speech_gateway
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps

SPEECH = np.frombuffer(beeps("hello again"), "<i2")
LIMIT_S = 30.0
LIMIT_BYTES = 2_000_000


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    limits = HttpSettings(max_audio_s=LIMIT_S, max_audio_file_bytes=LIMIT_BYTES)
    async with speech_gateway(tmp_path, limits) as gateway:
        yield gateway
        assert (await (await gateway.hear(file_of(SPEECH, "WAV"))).json())["text"] == "hello again"
        assert gateway.work == 0


def noise(seconds: float) -> np.ndarray:
    return np.random.default_rng(74).normal(0, 300, round(seconds * BEEP_RATE_HZ)).astype("<i2")


@pytest.mark.parametrize(
    "samples",
    [np.zeros(BEEP_RATE_HZ * 5, "<i2"), noise(5), noise(25), np.zeros(10, "<i2")],
    ids=["silence", "noise", "long noise", "a click"],
)
@pytest.mark.parametrize("form", ["json", "verbose_json"])
async def test_c74_without_speech_there_are_no_words(
    server: SpeechGateway, samples: np.ndarray, form: str
) -> None:
    answer = await server.hear(file_of(samples, "WAV"), response_format=form)

    assert answer.status == 200
    page = await answer.json()
    assert page["text"] == ""
    assert not page.get("segments")


@pytest.mark.parametrize("form", ["text", "srt", "vtt"])
async def test_c74_without_speech_other_forms_are_empty(server: SpeechGateway, form: str) -> None:
    answer = await server.hear(file_of(noise(2), "WAV"), response_format=form)

    assert (await answer.text()).strip() in ("", "WEBVTT")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"This is no audio.",
        bytes(5000),
        browser_file(tone(1.0, rate_hz=48_000), "webm", "libopus", 48_000)[:150],
        browser_file(tone(1.0, rate_hz=48_000), "mp4", "aac", 48_000)[:-600],
    ],
    ids=["nothing", "text", "zeros", "truncated webm", "truncated mp4"],
)
async def test_c74_what_cannot_be_decoded_is_told_with_what_can(
    server: SpeechGateway, data: bytes
) -> None:
    answer = await server.hear(data)

    assert await error_of(answer) == (400, "undecodable_audio", "file")
    message = (await answer.json())["error"]["message"]
    assert all(name in message for name in ACCEPTED_FORMATS)


@pytest.mark.parametrize("streams", [True, False])
async def test_c74_a_webm_that_was_cut_off_is_heard_as_far_as_it_goes(
    server: SpeechGateway, streams: bool
) -> None:
    samples = np.frombuffer(beeps("hello again hello again hello"), "<i2").repeat(2)
    webm = browser_file(samples, "webm", "libopus", 48_000)

    answer = await server.hear(webm[: len(webm) * 2 // 3], stream=str(streams).lower())

    assert answer.status == 200
    assert "hello again" in await answer.text()


@pytest.mark.parametrize("kind", ["MP3", "FLAC"])
async def test_c74_the_content_decides_and_not_the_name(server: SpeechGateway, kind: str) -> None:
    answer = await server.hear(file_of(SPEECH, kind))  # sent as speech.wav

    assert (await answer.json())["text"] == "hello again"


@pytest.mark.parametrize("kind", ["WAV", "WAVEX", "FLAC"])
async def test_c74_eight_channels_are_mixed(server: SpeechGateway, kind: str) -> None:
    answer = await server.hear(file_of(np.stack([SPEECH] * 8, axis=1), kind))

    assert (await answer.json())["text"] == "hello again"


async def test_c74_too_many_channels_are_refused(server: SpeechGateway) -> None:
    answer = await server.hear(file_of(np.stack([SPEECH] * 9, axis=1), "WAV"))

    assert await error_of(answer) == (400, "undecodable_audio", "file")


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
async def test_c74_a_file_that_is_too_long_is_refused_with_the_limit(
    server: SpeechGateway, kind: str
) -> None:
    answer = await server.hear(file_of(np.tile(tone(1.0, rate_hz=8000), 40), kind, rate_hz=8000))

    assert await error_of(answer) == (413, "limit_exceeded", "file")
    assert "limit is 30 s" in (await answer.json())["error"]["message"]


async def test_c74_a_file_with_too_many_bytes_is_refused_with_the_limit(
    server: SpeechGateway,
) -> None:
    answer = await server.hear(bytes(LIMIT_BYTES + 1))

    assert await error_of(answer) == (413, "limit_exceeded", "file")
    assert str(LIMIT_BYTES) in (await answer.json())["error"]["message"]


async def test_c74_a_wrong_field_name_is_told_with_the_right_one(server: SpeechGateway) -> None:
    answer = await server.hear(file_of(SPEECH, "WAV"), name="audio", model="whisper-1")

    assert await error_of(answer) == (400, "missing_required_parameter", "file")
    assert "'audio'" in (await answer.json())["error"]["message"]


async def test_c74_no_file_at_all(server: SpeechGateway) -> None:
    answer = await server.hear(None, model="whisper-1")

    assert await error_of(answer) == (400, "missing_required_parameter", "file")


@pytest.mark.parametrize("language", ["de", "xx", "not a language", "en; DROP"])
async def test_c74_a_language_that_is_not_understood(server: SpeechGateway, language: str) -> None:
    answer = await server.hear(file_of(SPEECH, "WAV"), language=language)

    assert await error_of(answer) == (400, "invalid_value", "language")
    assert "understands: en" in (await answer.json())["error"]["message"]


async def test_c74_a_long_file_is_heard_in_windows(server: SpeechGateway) -> None:
    pause = np.zeros(BEEP_RATE_HZ * 43 // 10, "<i2")
    samples = np.concatenate([SPEECH, pause] * 6)
    assert len(samples) / BEEP_RATE_HZ > 2 * 14

    page = await (await server.hear(file_of(samples, "WAV"), response_format="verbose_json")).json()

    assert page["text"] == " ".join(["hello again"] * 6)
    assert len(page["segments"]) >= 3
    starts = [segment["start"] for segment in page["segments"]]
    assert starts == sorted(starts)


async def test_c74_a_form_whose_names_are_no_text_is_refused(server: SpeechGateway) -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="f\xffle"; filename="a"\r\n\r\nab\r\n'
        b'--x\r\nContent-Disposition: form-data; name="mod\xfel"\r\n\r\n\xff\r\n--x--\r\n'
    )

    async with server.http.post(
        "/v1/audio/transcriptions",
        data=body,
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    ) as answer:
        assert answer.status == 400
