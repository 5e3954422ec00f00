from __future__ import annotations

import base64
import io
from typing import Any

import aiohttp
import av
import pytest
import soundfile

from tests.fakes.media_gateway import MediaGateway, error_of, media_gateway
from tests.fakes.sound_files import loudest_hz

RATE_HZ = 16_000


async def sound(gateway: MediaGateway, **body: Any) -> aiohttp.ClientResponse:
    asked = {"prompt": "rain", "response_format": "wav"} | body
    headers = asked.pop("headers", {})
    return await gateway.http.post("/v1/audio/generations", json=asked, headers=headers)


async def test_a_sound_is_a_file_of_the_length_and_channels_that_the_model_made() -> None:
    async with media_gateway() as gateway:
        answer = await sound(gateway, seconds=0.5, seed=4)
        assert answer.content_type == "audio/wav"
        samples, rate = soundfile.read(io.BytesIO(await answer.read()), dtype="int16")
        assert (samples.shape, rate) == ((8_000, 2), RATE_HZ)
        assert [round(loudest_hz(samples[:, side], rate)) for side in (0, 1)] == [240, 1040]

        pcm = await (await sound(gateway, seconds=0.5, seed=4, response_format="pcm")).read()
        assert pcm == samples.tobytes()


@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac"])
async def test_a_sound_comes_in_the_formats_of_speech(name: str) -> None:
    async with media_gateway() as gateway:
        answer = await sound(gateway, response_format=name)
        assert answer.status == 200
        assert answer.content_type == f"audio/{'mpeg' if name == 'mp3' else name}"
        with av.open(io.BytesIO(await answer.read())) as file:
            assert file.streams.audio[0].channels == 2
            frames = list(file.decode(audio=0))
        # A second, where nobody says; codecs fill up their last frame.
        rate = frames[0].sample_rate
        assert 1.0 <= sum(each.samples for each in frames) / rate <= 1.15


async def test_several_sounds_are_a_list_each_with_a_seed_of_its_own() -> None:
    async with media_gateway() as gateway:
        page = await (await sound(gateway, n=3, seed=1, seconds=0.25)).json()
        assert (page["response_format"], page["seconds"]) == ("wav", 0.25)
        files = [base64.b64decode(each["b64_json"]) for each in page["data"]]
        assert len(set(files)) == 3
        second = await sound(gateway, seed=2, seconds=0.25)
        assert files[1] == await second.read()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"prompt": " "}, (400, "invalid_value", "prompt")),
        ({"seconds": 0}, (400, "invalid_value", "seconds")),
        ({"seconds": 48}, (413, "limit_exceeded", "seconds")),
        ({"seconds": 40, "n": 4}, (413, "limit_exceeded", "n")),
        ({"n": 0}, (400, "invalid_value", "n")),
        ({"response_format": "midi"}, (400, "invalid_value", "response_format")),
        ({"num_inference_steps": 101}, (400, "invalid_value", "num_inference_steps")),
        ({"model": "echo"}, (404, "model_not_found", "model")),
        ({"prompt": "fail"}, (500, "stage_failed", None)),
        ({"prompt": "no memory"}, (503, "out_of_memory", None)),
    ],
)
async def test_what_cannot_be_done_says_why(
    body: dict[str, Any], error: tuple[int, str, str | None]
) -> None:
    async with media_gateway() as gateway:
        assert await error_of(await sound(gateway, **body)) == error
        assert (await sound(gateway)).status == 200


async def test_a_sound_that_is_asked_for_again_is_the_same_file() -> None:
    async with media_gateway() as gateway:
        key = {"Idempotency-Key": "one"}
        first = await sound(gateway, headers=key)
        again = await sound(gateway, headers=key)
        assert await again.read() == await first.read()
        assert again.content_type == "audio/wav"
        other = await sound(gateway, headers=key, seconds=2)
        assert await error_of(other) == (400, "idempotency_key_reused", "Idempotency-Key")


async def test_models_that_make_sounds_are_listed() -> None:
    async with media_gateway() as gateway:
        card = await (await gateway.http.get("/v1/models/sketches")).json()
        assert card["capabilities"]["sounds"]
