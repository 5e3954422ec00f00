"""A whole server in several processes: started, kept whole, and stopped in order."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp

from duologue.commands.supervisor import part_command
from tests.faults.edge_killed import children
from tests.faults.server_process import ServerProcess, server_process
from tests.patience import PATIENCE_S

CONFIG: dict[str, Any] = {
    "models": [{"name": "echo", "plugin": "echo"}],
    "engine": {"pipelines": ["scripted"]},
    "gateway": {"port": 0, "drain_timeout_s": 0},
    "hosts": {"edges": 2},
}


async def test_a_gateway_that_dies_is_started_again_and_the_end_is_in_order(
    tmp_path: Path,
) -> None:
    async with server_process(tmp_path, CONFIG) as server, aiohttp.ClientSession() as http:
        before = children(server.pid)
        assert len(before) == 3
        call = await http.ws_connect(f"{server.url}/v1/realtime")
        await call.receive_json()
        os.kill(before[-1], signal.SIGKILL)
        await whole_again(server, before)
        async with http.get(f"{server.url}/ready") as answer:
            assert answer.status == 200
        server.kill(signal.SIGTERM)
        closed = await call.receive()
        assert closed.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        assert await server.ended() == 0
        await server.nobody_is_left()


async def whole_again(server: ServerProcess, before: list[int]) -> None:
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as http:
        ready = False
        while not ready or len(children(server.pid)) < 3 or children(server.pid) == before:
            try:
                async with http.get(f"{server.url}/ready") as answer:
                    ready = answer.status == 200
            except aiohttp.ClientError:
                ready = False


async def test_settings_that_no_part_can_use_end_the_server(tmp_path: Path) -> None:
    wrong = {**CONFIG, "engine": {"pipelines": []}, "models": [{"name": "a", "plugin": "none"}]}
    async with server_process(tmp_path, wrong, wait=False) as server:
        assert await server.ended() == 2


async def test_parts_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    async with server_process(tmp_path, CONFIG) as server:
        assert len(server.processes()) == 4
        server.kill()
        await server.ended()
        await server.nobody_is_left()


def test_a_part_is_started_with_the_arguments_of_the_server() -> None:
    assert part_command(["serve", "--edges", "2"])[1:] == [
        *("-m", "duologue", "serve", "--edges", "2", "--part")
    ]
