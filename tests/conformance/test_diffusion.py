"""The SDK draws and films with real diffusers pipelines, tiny ones, in worker processes."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from openai import AsyncOpenAI

from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.codecs.pictures import decode, encode
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from tests.conformance.node_clients import seen_by
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway, media_settings
from tests.patience import until

pytestmark = pytest.mark.diffusion

PICTURE_RATE = 16
"""Pictures a second, where nobody asks for another rate."""

PIPELINE = """
name: {name}
outputs: image
offer: {{serves: [{serves}], width: {side}, height: {side}, steps: 3, guidance: 3.0, pictures: 9}}
stages:
  - name: diffusion
    runner: diffusion
    max_jobs: 8
    settings: {{folder: {folder}, threads: 1, call: {{max_sequence_length: 32}}}}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fakes.tiny_diffusers.make import make

    folder = tmp_path_factory.mktemp("pipelines")
    for name, serves, side in (("sd3", "images, image_edits", 64), ("wan", "videos", 32)):
        place = make(name, folder / name)
        text = PIPELINE.format(name=name, serves=serves, side=side, folder=place)
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture
async def gateway(tiny: Path, tmp_path: Path) -> AsyncIterator[MediaGateway]:
    settings = media_settings(
        pipelines=(tiny / "sd3.yaml", tiny / "wan.yaml"),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, http=HttpSettings()),
        jobs=JobSettings(folder=tmp_path),
    )
    async with media_gateway(settings) as made:
        yield made


def client_of(gateway: MediaGateway) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=API_KEY, base_url=f"{gateway.url}/v1", max_retries=0)


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
async def test_what_the_sdk_gets_is_what_the_library_makes(
    gateway: MediaGateway, tiny: Path
) -> None:
    from tests.unit.engines.runners.diffusion.driving import pixels

    async with client_of(gateway) as client:
        drawn = await client.images.generate(
            model="sd3", prompt="a cat on a chair", n=3, extra_body={"seed": 7}
        )
        webp = await client.images.generate(
            model="sd3",
            prompt="a cat on a chair",
            size="96x64",  # type: ignore[call-overload]
            output_format="webp",
            output_compression=100,
            extra_body={"seed": 7},
        )
        stream = await client.images.generate(
            model="sd3",
            prompt="a cat on a chair",
            stream=True,
            partial_images=2,
            extra_body={"seed": 7},
        )
        events = [event async for event in stream]
        video = await client.videos.create_and_poll(
            model="wan",
            prompt="waves",
            size="48x32",  # type: ignore[arg-type]
            poll_interval_ms=50,
            extra_body={"num_frames": 9, "seed": 7},
        )
        film = (await client.videos.download_content(video.id)).content

    assert drawn.data is not None
    images = [decode(base64.b64decode(each.b64_json or ""), 1 << 20) for each in drawn.data]
    made = await asyncio.to_thread(drawn_by_the_library, tiny, "a cat on a chair")
    wanted = pixels(made.images[0]).astype(int)
    assert np.abs(images[0] - wanted).max() <= 1, "three were made together"
    alone = decode(base64.b64decode(events[-1].b64_json), 1 << 20)
    assert np.array_equal(alone, wanted)
    assert [event.type for event in events] == [
        *["image_generation.partial_image"] * 2,
        "image_generation.completed",
    ]
    (wide,) = webp.data or ()
    assert base64.b64decode(wide.b64_json or "") == await asyncio.to_thread(
        wide_by_the_library, tiny, "a cat on a chair"
    )
    assert (webp.output_format, webp.size) == ("webp", "96x64")
    assert (video.status, video.size) == ("completed", "48x32")
    assert film == await asyncio.to_thread(filmed_by_the_library, tiny, 48)


def wide_by_the_library(tiny: Path, prompt: str) -> bytes:
    """What it makes of another size, as the file that is asked for."""
    from tests.unit.engines.runners.diffusion.driving import pixels

    return encode(pixels(drawn_by_the_library(tiny, prompt, 96).images[0]), "webp", 100)


def filmed_by_the_library(tiny: Path, width: int) -> bytes:
    """What plain diffusers makes of the prompt, encoded as every film is."""
    from duologue.engines.runners.diffusion.results import PICTURES_A_CHUNK, to_pixels
    from tests.unit.engines.runners.diffusion.driving import library

    frames = library(
        tiny / "wan",
        prompt="waves",
        width=width,
        height=32,
        num_frames=9,
        num_inference_steps=3,
        guidance_scale=3.0,
        max_sequence_length=32,
        seed=7,
        output_type="np",
    ).frames[0]
    writer = Fmp4Writer(width, 32, PICTURE_RATE)
    parts = [
        writer.add([to_pixels(each) for each in frames[start : start + PICTURES_A_CHUNK]])
        for start in range(0, len(frames), PICTURES_A_CHUNK)
    ]
    return b"".join([*parts, writer.end()])


def drawn_by_the_library(tiny: Path, prompt: str, width: int = 64) -> Any:
    """What plain diffusers makes of the prompt, as the requests of these tests ask for it."""
    from tests.unit.engines.runners.diffusion.driving import library

    return library(
        tiny / "sd3",
        prompt=prompt,
        width=width,
        height=64,
        num_inference_steps=3,
        guidance_scale=3.0,
        max_sequence_length=32,
        seed=7,
        output_type="np",
    )


@pytest.mark.node
async def test_what_the_sdk_for_node_gets_is_what_the_library_makes(
    gateway: MediaGateway, tiny: Path
) -> None:
    from tests.unit.engines.runners.diffusion.driving import pixels

    asked = (f"{gateway.url}/v1", API_KEY, "sd3", "wan", "9", "7")
    seen = await seen_by("media.mjs", *asked)
    made = await asyncio.to_thread(drawn_by_the_library, tiny, "a cat")
    image = decode(base64.b64decode(seen["image"]), 1 << 20)
    assert np.array_equal(image, pixels(made.images[0]))
    wide = await asyncio.to_thread(wide_by_the_library, tiny, "a cat")
    assert base64.b64decode(seen["wide"]) == wide
    film = base64.b64decode(seen["film"])
    assert film == await asyncio.to_thread(filmed_by_the_library, tiny, 32)
    with av.open(io.BytesIO(film)) as file:
        assert sum(1 for _ in file.decode(video=0)) == 9
    assert seen["partial"] == [0, 1]
    assert seen["size"] == "64x64"
    assert (seen["images"], seen["edited"], seen["status"]) == (2, 1, "completed")


async def test_a_client_that_hangs_up_frees_the_worker(gateway: MediaGateway) -> None:
    body = {"model": "sd3", "prompt": "a cat", "num_inference_steps": 100, "size": "512x512"}
    asking = asyncio.gather(
        gateway.http.post("/v1/images/generations", json=body), return_exceptions=True
    )
    await until(lambda: gateway.work > 0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: gateway.work == 0)
    answer = await gateway.http.post(
        "/v1/images/generations", json={"model": "sd3", "prompt": "a dog"}
    )
    assert answer.status == 200
