from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import av
import numpy as np
import pytest

from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.codecs.pictures import encode, probe
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from tests.fakes.media_gateway import MediaGateway, error_of, media_gateway, media_settings
from tests.patience import PATIENCE_S

PNG = encode(np.zeros((8, 8, 3), np.uint8), "png")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[MediaGateway]:
    settings = media_settings(jobs=JobSettings(folder=tmp_path, max_running=1, max_queued=3))
    async with media_gateway(settings) as made:
        yield made


async def ask(
    gateway: MediaGateway, path: str = "", *, key: str = "", **fields: Any
) -> aiohttp.ClientResponse:
    fields.setdefault("prompt", "waves")
    headers = {"Idempotency-Key": key} if key else {}
    return await gateway.http.post(f"/v1/videos{path}", json=fields, headers=headers)


async def get(gateway: MediaGateway, path: str) -> aiohttp.ClientResponse:
    return await gateway.http.get(f"/v1/videos{path}")


async def ended(gateway: MediaGateway, video: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page: dict[str, Any] = await (await get(gateway, f"/{video}")).json()
            if page["status"] in ("completed", "failed"):
                return page


def pictures(data: bytes) -> int:
    with av.open(io.BytesIO(data)) as film:
        return sum(1 for _ in film.decode(video=0))


async def test_a_video_is_asked_for_and_fetched(gateway: MediaGateway) -> None:
    video = await (await ask(gateway, seconds="2", size="32x48")).json()
    assert (video["object"], video["status"], video["seconds"]) == ("video", "queued", "2")
    done = await ended(gateway, video["id"])
    assert (done["status"], done["progress"], done["size"]) == ("completed", 100, "32x48")
    assert done["expires_at"] > done["completed_at"] >= done["created_at"]
    content = await get(gateway, f"/{video['id']}/content")
    assert content.content_type == "video/mp4"
    assert pictures(await content.read()) == 16
    thumbnail = await get(gateway, f"/{video['id']}/content?variant=thumbnail")
    assert probe(await thumbnail.read()).width == 32


async def test_a_form_may_bring_a_picture_or_a_video_to_begin_with(gateway: MediaGateway) -> None:
    writer = Fmp4Writer(16, 16, 8)
    film = writer.add([np.zeros((16, 16, 3), np.uint8)] * 3) + writer.end()
    for data, kind in ((PNG, "image/png"), (film, "video/mp4")):
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("prompt", "waves")
        form.add_field("num_frames", "4")
        form.add_field("lora", '{"name": "ink"}')
        form.add_field("input_reference", io.BytesIO(data), filename="a", content_type=kind)
        video = await (await gateway.http.post("/v1/videos", data=form)).json()
        assert (await ended(gateway, video["id"]))["status"] == "completed"


async def test_a_video_is_made_at_once(gateway: MediaGateway) -> None:
    answer = await ask(gateway, "/sync", num_frames=3)
    assert answer.headers["X-Model"] == "sketches"
    assert float(answer.headers["X-Inference-Time-S"]) >= 0
    assert pictures(await answer.read()) == 3
    assert await error_of(await ask(gateway, "/sync", prompt="fail")) == (500, "stage_failed", None)


async def test_one_video_is_made_from_another(gateway: MediaGateway) -> None:
    video = (await (await ask(gateway)).json())["id"]
    await ended(gateway, video)
    remix = await (await ask(gateway, f"/{video}/remix", prompt="at noon")).json()
    assert (remix["remixed_from_video_id"], remix["prompt"]) == (video, "at noon")
    assert (await ended(gateway, remix["id"]))["status"] == "completed"
    assert (await ask(gateway, "/video_nobody/remix")).status == 404


async def test_videos_are_listed_page_by_page(gateway: MediaGateway) -> None:
    made = [(await (await ask(gateway)).json())["id"] for _ in range(3)]
    page = await (await get(gateway, "?limit=2")).json()
    assert [each["id"] for each in page["data"]] == [made[2], made[1]]
    assert (page["has_more"], page["first_id"], page["last_id"]) == (True, made[2], made[1])
    rest = await (await get(gateway, f"?limit=2&after={made[1]}")).json()
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == ([made[0]], False)
    oldest = await (await get(gateway, "?order=asc&limit=1")).json()
    assert oldest["data"][0]["id"] == made[0]
    for wrong in ("?limit=0", "?limit=x", "?order=sideways"):
        assert (await get(gateway, wrong)).status == 400


async def test_a_video_that_fails_says_why(gateway: MediaGateway) -> None:
    video = (await (await ask(gateway, prompt="no memory")).json())["id"]
    failed = await ended(gateway, video)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "out_of_memory")
    content = await get(gateway, f"/{video}/content")
    assert (content.status, (await content.json())["error"]["code"]) == (422, "video_failed")


async def test_deleting_stops_the_work(gateway: MediaGateway) -> None:
    video = (await (await ask(gateway, prompt="never")).json())["id"]
    async with asyncio.timeout(PATIENCE_S):
        while not gateway.work:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (await get(gateway, f"/{video}/content")).status == 404
    deleted = await (await gateway.http.delete(f"/v1/videos/{video}")).json()
    assert deleted == {"id": video, "deleted": True, "object": "video.deleted"}
    async with asyncio.timeout(PATIENCE_S):
        while gateway.work:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert await error_of(await get(gateway, f"/{video}")) == (404, "video_not_found", "id")


async def test_only_so_many_wait(gateway: MediaGateway) -> None:
    answers = [await ask(gateway, prompt="never") for _ in range(6)]
    assert [answer.status for answer in answers].count(503) >= 1
    assert answers[-1].headers["Retry-After"] == "10"


async def test_a_request_that_is_sent_again_is_one_job(gateway: MediaGateway) -> None:
    first = await (await ask(gateway, key="k")).json()
    again = await (await ask(gateway, key="k")).json()
    assert again["id"] == first["id"]
    other = await ask(gateway, key="k", prompt="another")
    assert await error_of(other) == (400, "idempotency_key_reused", "Idempotency-Key")


async def test_videos_belong_to_a_key_in_the_address_too(tmp_path: Path) -> None:
    door = GatewaySettings(port=0, drain_timeout_s=0, api_keys=("a", "b"), query_keys=True)
    settings = media_settings(gateway=door, jobs=JobSettings(folder=tmp_path))
    async with media_gateway(settings) as made, aiohttp.ClientSession(made.url) as client:
        body = {"json": {"prompt": "waves"}, "headers": {"Idempotency-Key": "k"}}
        mine, yours = [
            (await (await client.post("/v1/videos", params={"api_key": key}, **body)).json())["id"]
            for key in "ab"
        ]
        assert mine != yours
        assert (await client.get(f"/v1/videos/{mine}?api_key=b")).status == 404
        header = {"Authorization": "Bearer a"}
        assert (await client.get(f"/v1/videos/{mine}", headers=header)).status == 200


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"seconds": "many"}, (400, "invalid_value", "seconds")),
        ({"num_frames": 5000}, (413, "limit_exceeded", "num_frames")),
        ({"size": "1x1"}, (400, "invalid_value", "size")),
        ({"model": "nobody"}, (404, "model_not_found", "model")),
        ({"lora": "ink"}, (400, "invalid_value", "lora")),
        ({"prompt": 5}, (400, "invalid_value", "prompt")),
    ],
)
async def test_what_cannot_be_done_says_why(
    gateway: MediaGateway, fields: dict[str, Any], error: tuple[int, str, str | None]
) -> None:
    assert await error_of(await ask(gateway, **fields)) == error
    assert (await get(gateway, "/x/content?variant=spritesheet")).status == 400
