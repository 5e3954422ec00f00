"""OpenAI's own Python SDK draws and films; nothing but its base URL is another."""

from __future__ import annotations

import base64
import io

import av
import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.types import ImageGenCompletedEvent, ImageGenPartialImageEvent

from duologue.codecs.pictures import encode, probe
from tests.conformance.node_clients import seen_by
from tests.fakes.media_gateway import API_KEY, MediaGateway, media_gateway

PNG = encode(np.zeros((32, 32, 3), np.uint8), "png")


def client_of(gateway: MediaGateway) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=API_KEY, base_url=f"{gateway.url}/v1", max_retries=0)


def picture(name: str) -> tuple[str, bytes, str]:
    return name, PNG, "image/png"


async def test_images() -> None:
    async with media_gateway() as gateway, client_of(gateway) as client:
        made = await client.images.generate(
            model="gpt-image-1",
            prompt="a cat",
            n=2,
            size="auto",
            output_format="jpeg",
            output_compression=80,
            quality="high",
            background="auto",
        )
        assert made.data is not None
        infos = [probe(base64.b64decode(each.b64_json or "")) for each in made.data]
        assert [(each.media, each.width) for each in infos] == [("jpeg", 64)] * 2
        assert made.usage is not None
        assert made.output_format == "jpeg"
        with pytest.raises(BadRequestError) as refused:
            await client.images.generate(prompt="a cat", size="100x7")  # type: ignore[call-overload]
        assert refused.value.param == "size"


async def test_an_image_while_it_is_made() -> None:
    async with media_gateway() as gateway, client_of(gateway) as client:
        stream = await client.images.generate(
            model="gpt-image-1", prompt="a cat", stream=True, partial_images=2
        )
        events = [event async for event in stream]
        assert [type(event) for event in events] == [
            *(ImageGenPartialImageEvent, ImageGenPartialImageEvent, ImageGenCompletedEvent)
        ]
        last = events[-1]
        assert isinstance(last, ImageGenCompletedEvent)
        assert probe(base64.b64decode(last.b64_json)).media == "png"
        assert last.usage.total_tokens > 0


async def test_edits() -> None:
    async with media_gateway() as gateway, client_of(gateway) as client:
        made = await client.images.edit(
            model="gpt-image-1",
            image=picture("a.png"),
            mask=picture("m.png"),
            prompt="a dog",
        )
        assert made.data is not None
        assert made.data[0].b64_json
        stream = await client.images.edit(
            model="gpt-image-1",
            image=[picture("a.png")],
            prompt="a dog",
            stream=True,
            partial_images=1,
        )
        kinds = [event.type async for event in stream]
        assert kinds == ["image_edit.partial_image", "image_edit.completed"]


# The vendor's own service ends; its SDK keeps the calls, and says so.
@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
async def test_videos() -> None:
    async with media_gateway() as gateway, client_of(gateway) as client:
        video = await client.videos.create_and_poll(
            model="sora-2", prompt="waves", seconds="4", poll_interval_ms=20
        )
        assert (video.status, video.seconds, video.progress) == ("completed", "4", 100)
        content = await client.videos.download_content(video.id)
        with av.open(io.BytesIO(content.content)) as film:
            assert sum(1 for _ in film.decode(video=0)) == 32
        remix = await client.videos.remix(video.id, prompt="at noon")
        assert remix.remixed_from_video_id == video.id
        reference = await client.videos.create(prompt="waves", input_reference=picture("first.png"))
        listed = [each.id async for each in client.videos.list(limit=2)]
        assert listed == [reference.id, remix.id, video.id], "over two pages"
        thumbnail = await client.videos.download_content(video.id, variant="thumbnail")
        assert probe(thumbnail.content).width == 64
        gone = await client.videos.delete(video.id)
        assert gone.deleted
        with pytest.raises(NotFoundError):
            await client.videos.retrieve(video.id)


@pytest.mark.node
async def test_the_sdk_for_node() -> None:
    async with media_gateway() as gateway:
        seen = await seen_by("media.mjs", f"{gateway.url}/v1", API_KEY, "gpt-image-1", "sora-2")
    assert len(base64.b64decode(seen.pop("film"))) > 1000
    assert probe(base64.b64decode(seen.pop("image"))).width == 64
    wide = probe(base64.b64decode(seen.pop("wide")))
    assert (wide.media, wide.width, wide.height) == ("webp", 96, 64)
    assert seen == {
        "partial": [0, 1],
        "images": 2,
        "size": "64x64",
        "completed": "image_generation.completed",
        "edited": 1,
        "status": "completed",
        "deleted": True,
    }
