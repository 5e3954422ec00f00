"""The page ``examples/two_nodes.md``, command by command, on one machine; a call on two nodes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from duologue.clients.client import DuplexClient
from tests.cluster.far_voice import begun, speaking
from tests.fakes.two_nodes import ROOT, TwoNodes
from tests.faults.server_process import server_process
from tests.patience import until

pytestmark = pytest.mark.ray

PAGE = ROOT / "examples/two_nodes.md"
MOVED = {"10.0.0.1": "127.0.0.4", "10.0.0.2": "127.0.0.5"}


@cache
def port() -> str:
    """One that is free."""
    with socket.create_server((MOVED["10.0.0.1"], 0)) as free:
        return str(free.getsockname()[1])


def moved(text: str) -> str:
    """Let a text of the page speak of this machine."""
    for there, here in MOVED.items():
        text = text.replace(there, here)
    return text.replace("6379", port())


def commands() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(moved(block)) for block in blocks]


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    two = TwoNodes()
    first, second, *_ = commands()
    try:
        two.start([*first[2:], "--include-dashboard=false"], second[2:])
        yield two
    finally:
        two.stop()


async def draw(port: int) -> tuple[int, dict[str, object]]:
    """Ask for a picture, as the page does."""
    command = [each.replace("8080", str(port)) for each in commands()[3]]
    curl = await asyncio.create_subprocess_exec(
        *command, "-w", "\n%{http_code}", stdout=asyncio.subprocess.PIPE
    )
    said, _ = await curl.communicate()
    body, _, status = said.decode().rpartition("\n")
    return int(status), json.loads(body)


async def test_the_pages_commands_draw_a_picture_on_the_other_node(
    nodes: TwoNodes, tmp_path: Path
) -> None:
    assert commands()[2] == ["duologue", "serve", "--config", "two_nodes.yaml"]
    config = yaml.safe_load(moved((ROOT / "examples/two_nodes.yaml").read_text()))
    pipelines = config["engine"]["pipeline_files"]
    config["engine"]["pipeline_files"] = [str(ROOT / "examples" / each) for each in pipelines]
    config["gateway"] = {"port": 0}
    # A test has less patience.
    config["engine"]["restart_backoff_max_s"] = 1
    async with server_process(tmp_path, config) as server:
        status, answer = await draw(server.port)
        assert status == 200, answer
        assert answer["data"]
        # The other machine is gone, and comes back.
        nodes.kill_last()
        status, answer = await draw(server.port)
        assert status in (500, 502, 503), answer
        nodes.start(commands()[1][2:])
        async with asyncio.timeout(120):
            while status != 200:
                status, answer = await draw(server.port)
                await asyncio.sleep(0.5)
        server.kill(signal.SIGTERM)
        assert await server.ended() == 0
    await server.nobody_is_left()
    await until(lambda: nodes.workers() == [])


async def test_a_call_is_spoken_by_a_stage_on_the_other_node_and_outlives_its_worker(
    nodes: TwoNodes, tmp_path: Path
) -> None:
    head = f"{MOVED['10.0.0.1']}:{port()}"
    async with (
        server_process(tmp_path, speaking(tmp_path, "pictures", head)) as server,
        DuplexClient.connect(f"127.0.0.1:{server.port}", reconnect=None) as call,
    ):
        first = await begun(call)
        (worker,) = nodes.workers()
        os.kill(worker, signal.SIGKILL)
        assert (await first.finished()).status == "failed"
        await until(lambda: nodes.workers() not in ([], [worker]))
        assert (await begun(call)).status == "in_progress"
        # No farewell: what it has elsewhere must be gone all the same.
        server.kill(signal.SIGKILL)
        await server.ended()
    await until(lambda: nodes.workers() == [])
