"""What one gateway was asked for, another one knows: videos, answers that were made, words said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from duologue.jobs.settings import JobSettings
from tests.conformance.talking_gateway import API_KEY as CHAT_KEY
from tests.fakes.chat_gateway import chat_settings, question
from tests.fakes.edged_gateway import EdgedGateway, edged_gateway
from tests.fakes.link import until
from tests.fakes.media_gateway import API_KEY, error_of, media_settings
from tests.patience import PATIENCE_S


@dataclass
class TwoEdges:
    server: EdgedGateway
    one: aiohttp.ClientSession
    two: aiohttp.ClientSession


@asynccontextmanager
async def two_edges(settings: Any, key: str) -> AsyncIterator[TwoEdges]:
    headers = {"Authorization": f"Bearer {key}"}
    async with edged_gateway(settings, edges=2) as server:
        one, two = (aiohttp.ClientSession(url, headers=headers) for url in server.urls)
        async with one, two:
            yield TwoEdges(server, one, two)


@pytest.fixture
async def media(tmp_path: Path) -> AsyncIterator[TwoEdges]:
    jobs = JobSettings(folder=tmp_path, max_running=1, max_queued=4)
    async with two_edges(media_settings(jobs=jobs), API_KEY) as edges:
        yield edges


async def ended(http: aiohttp.ClientSession, video: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page: dict[str, Any] = await (await http.get(f"/v1/videos/{video}")).json()
            if page["status"] in ("completed", "failed"):
                return page


async def test_a_video_that_one_gateway_took_is_had_from_the_other(media: TwoEdges) -> None:
    asked = {"prompt": "waves", "seconds": "2", "size": "32x48"}
    video = await (await media.one.post("/v1/videos", json=asked)).json()
    assert video["status"] == "queued"
    done = await ended(media.two, video["id"])
    assert (done["status"], done["progress"]) == ("completed", 100)
    page = await (await media.two.get("/v1/videos")).json()
    assert [each["id"] for each in page["data"]] == [video["id"]]
    films = [
        await (await http.get(f"/v1/videos/{video['id']}/content")).read()
        for http in (media.one, media.two)
    ]
    assert films[0] == films[1]
    assert films[0][4:8] == b"ftyp"
    thumbnail = await media.two.get(f"/v1/videos/{video['id']}/content?variant=thumbnail")
    assert (await thumbnail.read())[:4] == b"RIFF"

    remix = {"prompt": "at noon"}
    changed = await (await media.two.post(f"/v1/videos/{video['id']}/remix", json=remix)).json()
    assert changed["remixed_from_video_id"] == video["id"]
    assert (await ended(media.one, changed["id"]))["status"] == "completed"
    older = await (await media.one.get(f"/v1/videos?after={changed['id']}")).json()
    assert [each["id"] for each in older["data"]] == [video["id"]]

    await media.one.delete(f"/v1/videos/{video['id']}")
    gone = await media.two.get(f"/v1/videos/{video['id']}")
    assert await error_of(gone) == (404, "video_not_found", "id")


async def test_a_video_that_is_being_made_is_stopped_at_the_other_gateway(media: TwoEdges) -> None:
    engine = media.server.host.side.engine
    asked = {"prompt": "never"}
    video = (await (await media.one.post("/v1/videos", json=asked)).json())["id"]
    await until(lambda: engine.stats().requests == 1)
    early = await media.two.get(f"/v1/videos/{video}/content")
    assert await error_of(early) == (404, "video_not_ready", None)
    deleted = await (await media.two.delete(f"/v1/videos/{video}")).json()
    assert deleted == {"id": video, "deleted": True, "object": "video.deleted"}
    await until(lambda: engine.stats().requests == 0)


async def test_jobs_go_on_though_the_gateway_that_took_them_is_gone(media: TwoEdges) -> None:
    video = (await (await media.one.post("/v1/videos", json={"prompt": "waves"})).json())["id"]
    media.server.edges[0].host.leave("server_shutting_down")
    await media.server.edges[0].gateway.stop_listening()
    assert (await ended(media.two, video))["status"] == "completed"


async def test_only_so_many_jobs_wait_whichever_gateway_takes_them(media: TwoEdges) -> None:
    answers = [
        await (media.one, media.two)[number % 2].post("/v1/videos", json={"prompt": "never"})
        for number in range(7)
    ]
    statuses = [answer.status for answer in answers]
    # One is worked on, as soon as the desk has begun it, and four wait.
    assert statuses.count(200) in (4, 5)
    assert statuses[-1] == 503
    assert answers[-1].headers["Retry-After"] == "10"


@pytest.mark.parametrize("path", ["/v1/videos", "/v1/images/generations"])
async def test_a_request_sent_again_at_the_other_gateway_is_the_same_one(
    media: TwoEdges, path: str
) -> None:
    key = {"Idempotency-Key": "k"}
    asked = {"prompt": "waves"}
    first = await (await media.one.post(path, json=asked, headers=key)).json()
    again = await (await media.two.post(path, json=asked, headers=key)).json()
    if path == "/v1/videos":
        assert again["id"] == first["id"]
    else:
        assert again == first
    other = await media.two.post(path, json={"prompt": "another"}, headers=key)
    assert await error_of(other) == (400, "idempotency_key_reused", "Idempotency-Key")


async def test_a_request_that_is_worked_on_at_one_gateway_is_not_begun_at_the_other(
    media: TwoEdges,
) -> None:
    engine = media.server.host.side.engine
    key = {"Idempotency-Key": "k"}
    path, asked = "/v1/images/generations", {"prompt": "never"}
    first = asyncio.create_task(media.one.post(path, json=asked, headers=key))
    await until(lambda: engine.stats().requests == 1)
    again = await media.two.post(path, json=asked, headers=key)
    assert await error_of(again) == (409, "idempotency_in_progress", "Idempotency-Key")
    first.cancel()
    await until(lambda: engine.stats().requests == 0)
    # Nobody makes it any more, so the other gateway may.
    async with asyncio.TaskGroup() as group:
        second = group.create_task(media.two.post(path, json=asked, headers=key))
        await until(lambda: engine.stats().requests == 1)
        second.cancel()


async def test_what_was_said_at_one_gateway_is_known_at_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    async with two_edges(chat_settings(tmp_path), CHAT_KEY) as edges:
        path = "/v1/chat/completions"
        how = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}}
        said = await (await edges.one.post(path, json=question("hello there", **how))).json()
        message = said["choices"][0]["message"]
        body = question("and now", **how)
        body["messages"] = [
            {"role": "user", "content": "hello there"},
            {"role": "assistant", "audio": {"id": message["audio"]["id"]}},
            {"role": "user", "content": "and now"},
        ]
        for http in (edges.two, edges.one):
            async with http.post(path, json=body) as answer:
                assert answer.status == 200, await answer.text()
        body["messages"][1]["audio"]["id"] = "audio_nobody"
        async with edges.two.post(path, json=body) as answer:
            assert await error_of(answer) == (400, "invalid_value", "messages[1].audio.id")
