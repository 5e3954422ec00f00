"""Sounds over HTTP, made by real diffusers pipelines, tiny ones, in worker processes."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from tests.fakes.media_gateway import MediaGateway, media_gateway, media_settings

pytestmark = [
    pytest.mark.diffusion,
    pytest.mark.timeout(240),  # two workers load their libraries
    pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*past_key_values.*:FutureWarning"),
]

PIPELINE = """
name: {name}
outputs: audio
offer: {{serves: [sounds], steps: 2, guidance: 3.0, sound_s: 0.25, max_sound_s: 1}}
stages:
  - name: diffusion
    runner: diffusion
    max_jobs: 8
    settings: {{folder: {folder}, threads: 1}}
"""
RATES = {"stableaudio": (8_000, 2), "audioldm2": (16_000, 1)}
"""Samples a second, and channels."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fakes.tiny_diffusers.make import make

    folder = tmp_path_factory.mktemp("pipelines")
    for name in RATES:
        place = make(name, folder / name)
        (folder / f"{name}.yaml").write_text(PIPELINE.format(name=name, folder=place))
    return folder


@pytest.fixture
async def gateway(tiny: Path, tmp_path: Path) -> AsyncIterator[MediaGateway]:
    settings = media_settings(
        pipelines=tuple(tiny / f"{name}.yaml" for name in RATES),
        gateway=GatewaySettings(port=0, drain_timeout_s=0),
        jobs=JobSettings(folder=tmp_path),
    )
    async with media_gateway(settings) as made:
        yield made


def samples_of(data: bytes, channels: int) -> NDArray[np.int16]:
    return np.frombuffer(data, "<i2").reshape(-1, channels)


@pytest.mark.parametrize("name", RATES)
async def test_a_sound_is_what_the_library_makes(
    gateway: MediaGateway, tiny: Path, name: str
) -> None:
    from tests.unit.engines.runners.diffusion.driving import library

    rate_hz, channels = RATES[name]
    body = {"model": name, "prompt": "rain", "seed": 7, "response_format": "pcm"}
    answer = await gateway.http.post("/v1/audio/generations", json=body)
    assert answer.status == 200, await answer.text()
    made = samples_of(await answer.read(), channels)
    length = "audio_end_in_s" if name == "stableaudio" else "audio_length_in_s"
    expected = await asyncio.to_thread(
        library,
        tiny / name,
        prompt="rain",
        num_inference_steps=2,
        guidance_scale=3.0,
        output_type="np",
        seed=7,
        **{length: 0.25},
    )
    wanted = np.asarray(expected.audios[0], np.float32).reshape(channels, -1).T
    assert made.shape == (rate_hz // 4, channels)
    # The library was loaded with other threads, which round otherwise.
    np.testing.assert_allclose(made / 32_767, np.clip(wanted, -1, 1), atol=1e-3)
    assert np.abs(made).max() > 100


async def test_several_sounds_are_files_that_others_read(gateway: MediaGateway) -> None:
    body = {"model": "stableaudio", "prompt": "rain", "n": 2, "response_format": "flac"}
    answer = await gateway.http.post("/v1/audio/generations", json=body)
    files = [base64.b64decode(each["b64_json"]) for each in (await answer.json())["data"]]
    assert files[0] != files[1]
    for data in files:
        with av.open(io.BytesIO(data)) as file:
            frames = list(file.decode(audio=0))
        assert (frames[0].sample_rate, len(frames[0].layout.channels)) == (8_000, 2)
        assert sum(each.samples for each in frames) == 2_000
