"""A whole server in several processes: started, kept whole, and stopped in order."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from duologue.commands.supervisor import part_command
from tests.fakes.link import until
from tests.fakes.served import Served, served

CONFIG: dict[str, Any] = {
    "models": [{"name": "echo", "plugin": "echo"}],
    "engine": {"pipelines": ["scripted"]},
    "gateway": {"port": 0, "drain_timeout_s": 0},
}


@pytest.mark.timeout(90)  # four processes
async def test_a_gateway_that_dies_is_started_again_and_the_end_is_in_order(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, CONFIG) as server, aiohttp.ClientSession() as http:
        before = server.parts
        assert len(before) == 3
        call = await http.ws_connect(f"{server.url}/v1/realtime")
        await call.receive_json()
        os.kill(before[-1], signal.SIGKILL)
        await whole_again(server, before)
        async with http.get(f"{server.url}/ready") as answer:
            assert answer.status == 200
        assert await server.end() == 0
        closed = await call.receive()
        assert closed.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    said = "\n".join(server.said)
    assert said.index("stopping") > said.index("ready:")
    assert "part_died" in said


async def whole_again(server: Served, before: list[int]) -> None:
    async with asyncio.timeout(30), aiohttp.ClientSession() as http:
        ready = False
        while not ready or len(server.parts) < 3 or server.parts == before:
            try:
                async with http.get(f"{server.url}/ready") as answer:
                    ready = answer.status == 200
            except aiohttp.ClientError:
                ready = False


@pytest.mark.timeout(60)  # a process of its own
async def test_settings_that_no_part_can_use_end_the_server(tmp_path: Path) -> None:
    wrong = {**CONFIG, "engine": {"pipelines": []}, "models": [{"name": "a", "plugin": "none"}]}
    async with served(tmp_path, wrong, edges=1) as server:
        assert await server.end() == 2
    assert any("none" in line for line in server.said)


@pytest.mark.timeout(60)  # a process of its own
async def test_parts_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    async with served(tmp_path, CONFIG, edges=1) as server:
        parts = server.parts
        server.process.kill()
        await server.process.wait()
        async with asyncio.timeout(30):
            await until(lambda: not any(map(is_alive, parts)))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_part_is_started_with_the_arguments_of_the_server() -> None:
    assert part_command(["serve", "--edges", "2"])[1:] == [
        *("-m", "duologue", "serve", "--edges", "2", "--part")
    ]
