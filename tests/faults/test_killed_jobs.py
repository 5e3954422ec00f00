"""A server is killed while it makes videos: no job is lost, and none is stuck."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.media_gateway import API_KEY

KEY = {"Authorization": f"Bearer {API_KEY}"}


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[tuple[Process, aiohttp.ClientSession]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.killed_server", str(folder), stdout=PIPE
    )
    assert process.stdout is not None
    try:
        line = b""
        while not line.startswith(b"port "):  # logs come before it
            line = await process.stdout.readline()
            assert line, "it did not start"
        port = int(line.split()[1])
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=KEY) as http:
            yield process, http
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def submit(http: aiohttp.ClientSession, prompt: str) -> str:
    async with http.post("/v1/videos", json={"prompt": prompt}) as answer:
        assert answer.status == 200
        return str((await answer.json())["id"])


async def state(http: aiohttp.ClientSession, video: str, *wanted: str) -> dict[str, Any]:
    while True:
        async with http.get(f"/v1/videos/{video}") as answer:
            assert answer.status == 200, "it is not lost"
            page: dict[str, Any] = await answer.json()
        if page["status"] in wanted:
            return page


async def test_every_job_ends_although_the_server_is_killed_again_and_again(tmp_path: Path) -> None:
    async with server(tmp_path) as (process, http):
        done = await submit(http, "waves")
        await state(http, done, "completed")
        stuck = await submit(http, "never")
        waiting = await submit(http, "waves")
        await state(http, stuck, "in_progress")
        process.kill()
        await process.wait()

    async with server(tmp_path) as (process, http):
        assert (await state(http, done, "completed"))["progress"] == 100
        await state(http, stuck, "in_progress")
        assert (await state(http, waiting, "queued"))["status"] == "queued"
        process.kill()
        await process.wait()

    async with server(tmp_path) as (_process, http):
        failed = await state(http, stuck, "failed")
        assert failed["error"]["code"] == "owner_lost"
        await state(http, waiting, "completed")
        for video in (done, waiting):
            async with http.get(f"/v1/videos/{video}/content") as answer:
                assert len(await answer.read()) > 1000
