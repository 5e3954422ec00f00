from __future__ import annotations

import asyncio
import base64
import io
import json
from typing import Any

import aiohttp
import numpy as np
import pytest

from duologue.codecs.pictures import encode, probe
from tests.fakes.media_gateway import MediaGateway, error_of, media_gateway
from tests.patience import PATIENCE_S

PNG = encode(np.zeros((32, 32, 3), np.uint8), "png")


async def draw(gateway: MediaGateway, **body: Any) -> aiohttp.ClientResponse:
    body.setdefault("prompt", "a cat")
    headers = body.pop("headers", {})
    return await gateway.http.post("/v1/images/generations", json=body, headers=headers)


async def edit(
    gateway: MediaGateway, *images: bytes, mask: bytes = b"", **fields: str
) -> aiohttp.ClientResponse:
    form = aiohttp.FormData(default_to_multipart=True)
    for image in images:
        form.add_field("image", io.BytesIO(image), filename="a.png")
    if mask:
        form.add_field("mask", io.BytesIO(mask), filename="m.png")
    for name, value in ({"prompt": "a dog"} | fields).items():
        form.add_field(name, value)
    return await gateway.http.post("/v1/images/edits", data=form)


async def events(answer: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    text = await answer.text()
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


async def test_as_many_images_as_asked_for_of_the_size_and_kind() -> None:
    async with media_gateway() as gateway:
        answer = await draw(gateway, n=3, size="128x96", output_format="webp", seed=5)
        page = await answer.json()
        images = [probe(base64.b64decode(each["b64_json"])) for each in page["data"]]
        assert {(each.media, each.width, each.height) for each in images} == {("webp", 128, 96)}
        assert len({each["b64_json"] for each in page["data"]}) == 3
        assert (page["size"], page["output_format"]) == ("128x96", "webp")
        assert page["usage"]["total_tokens"] == 2 + 3 * 48

        again = await (await draw(gateway, size="128x96", output_format="webp", seed=5)).json()
        assert again["data"][0] == page["data"][0], "the first of several has the seed itself"
        link = await (await draw(gateway, response_format="url")).json()
        assert link["data"][0]["url"].startswith("data:image/png;base64,")


async def test_an_image_is_shown_while_it_is_made() -> None:
    async with media_gateway() as gateway:
        answer = await draw(gateway, stream=True, partial_images=2, seed=1)
        assert answer.content_type == "text/event-stream"
        *partial, completed = await events(answer)
        assert [each["partial_image_index"] for each in partial] == [0, 1]
        assert {each["type"] for each in partial} == {"image_generation.partial_image"}
        assert completed["type"] == "image_generation.completed"
        assert completed["usage"]["output_tokens"] == 16
        whole = await (await draw(gateway, seed=1)).json()
        assert completed["b64_json"] == whole["data"][0]["b64_json"]


async def test_an_edit_begins_with_an_image() -> None:
    async with media_gateway() as gateway:
        page = await (await edit(gateway, PNG, mask=PNG, size="64x64")).json()
        assert probe(base64.b64decode(page["data"][0]["b64_json"])).width == 64
        *_, completed = await events(await edit(gateway, PNG, stream="true"))
        assert completed["type"] == "image_edit.completed"
        assert await error_of(await edit(gateway)) == (400, "missing_required_parameter", "image")
        assert await error_of(await edit(gateway, PNG, PNG)) == (400, "unsupported", "image")
        assert await error_of(await edit(gateway, b"GIF")) == (400, "undecodable_image", "image")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"prompt": ""}, (400, "invalid_value", "prompt")),
        ({"size": "63x64"}, (400, "invalid_value", "size")),
        ({"size": "4096x64"}, (413, "limit_exceeded", "size")),
        ({"n": 11}, (400, "invalid_value", "n")),
        ({"n": 2, "stream": True}, (400, "invalid_value", "n")),
        ({"model": "nobody"}, (404, "model_not_found", "model")),
        ({"model": 5}, (400, "invalid_value", "model")),
        ({"response_format": "file"}, (400, "invalid_value", "response_format")),
        ({"background": "transparent"}, (400, "unsupported", "background")),
        ({"prompt": "fail"}, (500, "stage_failed", None)),
        ({"prompt": "no memory"}, (503, "out_of_memory", None)),
        ({"prompt": "fail", "stream": True}, (500, "stage_failed", None)),
    ],
)
async def test_what_cannot_be_done_says_why(
    body: dict[str, Any], error: tuple[int, str, str | None]
) -> None:
    async with media_gateway() as gateway:
        assert await error_of(await draw(gateway, **body)) == error
        assert (await draw(gateway)).status == 200


async def test_the_work_ends_with_its_client() -> None:
    async with media_gateway() as gateway:
        asking = asyncio.gather(draw(gateway, prompt="never", n=2), return_exceptions=True)
        while gateway.work < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(PATIENCE_S):
            while gateway.work:  # noqa: ASYNC110
                await asyncio.sleep(0)


async def test_a_request_that_is_sent_again_is_made_once() -> None:
    async with media_gateway() as gateway:
        key = {"Idempotency-Key": "one"}
        first = await (await draw(gateway, headers=key)).read()
        assert await (await draw(gateway, headers=key)).read() == first
        other = await draw(gateway, headers=key, size="32x32")
        assert await error_of(other) == (400, "idempotency_key_reused", "Idempotency-Key")
        assert await (await draw(gateway, headers={"Idempotency-Key": "two"})).read() != first
        failed = {"Idempotency-Key": "three"}
        assert (await draw(gateway, prompt="fail", headers=failed)).status == 500
        assert (await draw(gateway, headers=failed)).status == 200, "it was not answered"


async def test_models_that_draw_are_listed() -> None:
    async with media_gateway() as gateway:
        page = await (await gateway.http.get("/v1/models")).json()
        assert [each["id"] for each in page["data"]] == ["echo", "sketches"]
        card = await (await gateway.http.get("/v1/models/sketches")).json()
        assert card["capabilities"]["images"]
        assert not card["capabilities"]["chat"]
