"""C75: images and videos that cannot be, fail or are given up; a call beside them loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import pytest_asyncio

from duologue.app import App, running_app
from duologue.clients import DuplexClient
from duologue.codecs.pictures import encode
from duologue.jobs.settings import JobSettings
from tests.fakes.talking_gateway import talking_settings
from tests.patience import PATIENCE_S, until

LINE = "This answer goes on for as long as somebody asks for pictures beside it. " * 2
BYTES_PER_CHARACTER = 40 * 24 * 2
PNG = encode(np.zeros((8, 8, 3), np.uint8), "png")


class Guarded:
    """A server that talks and draws, and a client of its routes."""

    def __init__(self, app: App, http: aiohttp.ClientSession) -> None:
        self.app, self.http = app, http

    def call(self) -> DuplexClient:
        return DuplexClient.connect(self.app.url, model="scripted")

    @property
    def drawing(self) -> int:
        """Requests of the engine that make pictures."""
        stages = self.app.engine.stats().stages
        return sum(each.busy + each.queued for each in stages if "sketch" in each.stage)

    async def draw(self, **body: Any) -> tuple[int, dict[str, Any]]:
        asked = {"prompt": "a cat", **body}
        async with self.http.post("/v1/images/generations", json=asked) as answer:
            return answer.status, await answer.json()

    async def film(self, **body: Any) -> str:
        async with self.http.post("/v1/videos", json=body) as answer:
            video: str = (await answer.json())["id"]
            return video

    async def ended(self, video: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                async with self.http.get(f"/v1/videos/{video}") as answer:
                    assert answer.status == 200, "a job that failed can be looked at"
                    page: dict[str, Any] = await answer.json()
                if page["status"] in ("completed", "failed"):
                    return page


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Guarded]:
    made = talking_settings(tmp_path, LINE)
    engine = made.engine.model_copy(update={"pipelines": ("sketches",)})
    jobs = JobSettings(folder=tmp_path / "jobs", max_running=1)
    settings = made.model_copy(update={"engine": engine, "jobs": jobs})
    async with running_app(settings) as app:
        url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
        async with aiohttp.ClientSession(url) as http:
            yield Guarded(app, http)


async def test_c75_what_cannot_be_is_refused_with_the_limit(server: Guarded) -> None:
    for body, param, limit in (
        ({"size": "100000x10000"}, "size", "2048"),
        ({"n": 0}, "n", "1"),
        ({"n": 10**9}, "n", "10"),
    ):
        status, page = await server.draw(**body)
        assert status in (400, 413), page
        assert page["error"]["param"] == param
        assert limit in page["error"]["message"]
    status, page = await server.draw(n=3)
    assert (status, len(page["data"])) == (200, 3)
    form = aiohttp.FormData({"prompt": "a dog"})
    for number in range(20):
        form.add_field("image[]", PNG, filename=f"{number}.png", content_type="image/png")
    async with server.http.post("/v1/images/edits", data=form) as answer:
        assert answer.status == 400
        error = (await answer.json())["error"]
        assert error["param"] == "image"
        assert "more than one image" in error["message"]


async def test_c75_a_job_without_memory_fails_alone_and_a_call_keeps_its_voice(
    server: Guarded,
) -> None:
    async with server.call() as call:
        alone = await call.ask("Talk to me.")
    async with server.call() as call:
        asking = asyncio.create_task(call.ask("Talk to me."))
        big = await server.film(prompt="no memory", size="64x64")
        small = await server.film(prompt="waves", size="64x64", seconds="1")
        failed = await server.ended(big)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "out_of_memory")
        assert (await server.ended(small))["status"] == "completed"

        running = await server.film(prompt="never", size="64x64")
        await until(lambda: server.drawing == 1)
        async with server.http.delete(f"/v1/videos/{running}") as answer:
            assert (await answer.json())["deleted"]
        await until(lambda: server.drawing == 0)

        for path in ("/v1/videos/sync", "/v1/images/generations"):
            leaving = asyncio.create_task(server.http.post(path, json={"prompt": "never"}))
            await until(lambda: server.drawing == 1)
            leaving.cancel()
            await until(lambda: server.drawing == 0)

        answered = await asking
        assert answered.status == "completed"
        assert answered.text == LINE
        assert len(answered.audio) == pytest.approx(len(LINE) * BYTES_PER_CHARACTER, rel=0.05)
        assert answered.audio == alone.audio
