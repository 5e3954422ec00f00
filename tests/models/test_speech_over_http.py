"""What the real voice says over HTTP, the real recogniser writes down over HTTP."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from openai import AsyncOpenAI

from duologue.app import App, running_app
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.fakes.sound_files import file_of

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

TEXT = (
    "The meeting begins at nine o'clock on Monday morning. Please bring the red folder, and a "
    "pencil. There will be coffee and fresh bread for everybody. The train to the coast leaves in "
    "the afternoon, so we should not be late. My sister lives in a small house by the river. She "
    "has two dogs and an old grey cat. In winter the garden is white with snow, and the children "
    "build a house of ice. When spring comes, they plant flowers and tomatoes."
)


@pytest.fixture(scope="module")
def scoring() -> Iterator[ModuleType]:
    """The module that counts wrong words, from the benchmarks."""
    sys.path.insert(0, str(ROOT / "bench"))
    yield importlib.import_module("scoring")
    sys.path.remove(str(ROOT / "bench"))


def error_rate(scoring: ModuleType, heard: str) -> float:
    wrong, words = scoring.word_errors(TEXT, heard)
    return float(wrong / words)


@dataclass(frozen=True)
class Server:
    """The gateway, and OpenAI's own client for it."""

    app: App
    client: AsyncOpenAI


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    settings = Settings(
        models=(ModelSettings(name="duologue", plugin="cascaded"),),
        engine=EngineSettings(pipelines=("asr", "tts")),
        gateway=GatewaySettings(port=0, drain_timeout_s=0),
        sessions=SessionSettings(listening=ListeningSettings(vad=None, end_of_turn=None)),
    )
    async with running_app(settings) as app:
        url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}/v1"
        async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
            yield Server(app, client)


async def spoken(server: Server, text: str, **how: Any) -> bytes:
    answer = await server.client.audio.speech.create(
        model="tts-1", voice="alloy", input=text, **how
    )
    return answer.content


async def written(server: Server, data: bytes, **how: Any) -> Any:
    return await server.client.audio.transcriptions.create(
        model="whisper-1", file=("speech", data), **how
    )


@pytest.mark.parametrize("form", ["mp3", "opus", "aac", "flac", "wav"])
async def test_what_is_spoken_is_understood_in_every_format(form: str, scoring: ModuleType) -> None:
    async with serving() as server:
        data = await spoken(server, TEXT, response_format=form)
        transcription = await written(server, data)

    assert error_rate(scoring, transcription.text) < 0.08


@pytest.mark.parametrize("speed", [0.4, 0.7, 1.5, 2.0])
async def test_slower_and_faster_speech_is_understood_too(
    speed: float, scoring: ModuleType
) -> None:
    async with serving() as server:
        data = await spoken(server, TEXT, response_format="wav", speed=speed)
        transcription = await written(server, data)

    assert error_rate(scoring, transcription.text) < 0.2


async def test_words_are_where_the_voice_said_them() -> None:
    async with serving() as server:
        data = await spoken(server, TEXT, response_format="wav")
        detailed = await written(
            server,
            data,
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )

    samples = np.frombuffer(data[44:], "<i2").astype(np.float64)
    starts = [word.start for word in detailed.words]
    assert starts == sorted(starts)
    assert detailed.words[-1].end <= detailed.duration
    # Where words are said, there is sound; between sentences there is none.
    said = [
        np.abs(samples[int(word.start * 24_000) : int(word.end * 24_000)]).mean()
        for word in detailed.words
        if word.end - word.start > 0.1
    ]
    assert np.mean(np.array(said) > 300) > 0.95
    assert "".join(each.text for each in detailed.segments).split() == [
        word.word for word in detailed.words
    ]
    assert all(each.end - each.start <= 8 for each in detailed.segments)


@pytest.mark.parametrize("kind", ["silence", "white", "brown", "hum", "clicks"])
async def test_c74_noise_has_no_words(kind: str) -> None:
    seconds, rate = 40, 16_000
    place = np.arange(seconds * rate) / rate
    chance = np.random.default_rng(74)
    walk = np.cumsum(chance.normal(0, 1, len(place)))
    samples = {
        "silence": np.zeros(len(place)),
        "white": chance.normal(0, 0.05, len(place)),
        "brown": 0.3 * (walk - walk.mean()) / np.abs(walk - walk.mean()).max(),
        "hum": 0.2 * np.sin(2 * np.pi * 50 * place),
        "clicks": 0.8 * (np.arange(len(place)) % 4000 == 0),
    }[kind]
    data = file_of((samples * 32767).astype("<i2"), "WAV", rate_hz=rate)

    async with serving() as server:
        transcription = await written(server, data)

    assert transcription.text == ""


async def test_a_prompt_helps_with_names() -> None:
    async with serving() as server:
        data = await spoken(server, "I met Siobhan and Niamh at the station.")
        helped = await written(server, data, prompt="Siobhan, Niamh")

    assert "Siobhan" in helped.text
