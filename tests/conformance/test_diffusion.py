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

from duologue.codecs.pictures import decode
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from tests.conformance.node_clients import seen_by
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway, media_settings
from tests.patience import until

pytestmark = pytest.mark.diffusion

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
        stream = await client.images.generate(
            model="sd3",
            prompt="a cat on a chair",
            stream=True,
            partial_images=2,
            extra_body={"seed": 7},
        )
        events = [event async for event in stream]
        video = await client.videos.create_and_poll(
            model="wan", prompt="waves", poll_interval_ms=50, extra_body={"num_frames": 9}
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
    assert video.status == "completed"
    with av.open(io.BytesIO(film)) as file:
        assert sum(1 for _ in file.decode(video=0)) == 9


def drawn_by_the_library(tiny: Path, prompt: str) -> Any:
    """What plain diffusers makes of the prompt, as the requests of these tests ask for it."""
    from tests.unit.engines.runners.diffusion.driving import library

    return library(
        tiny / "sd3",
        prompt=prompt,
        width=64,
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
    with av.open(io.BytesIO(base64.b64decode(seen["film"]))) as file:
        assert sum(1 for _ in file.decode(video=0)) == 9
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
