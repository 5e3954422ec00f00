"""A server that is killed: its memory of calls is gone, and nothing else may be left of it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cases.test_lost_connections import PATH as DUPLEX_PATH
from tests.faults.faulty_gateway import pipeline_files
from tests.faults.gateway_line import COMMIT, CREATE, UPDATE, append, take_turn
from tests.faults.server_process import server_process
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import UPGRADE, RawWebSocket, Response, connected

CALLS = 6
LONG = "and so on " * 50


def a_config(folder: Path, **sessions: Any) -> dict[str, Any]:
    """Two models that say tones, made by a worker process; their detector is one too."""
    return {
        "models": [
            {"name": "long", "plugin": "scripted", "options": {"lines": [LONG]}},
            {"name": "short", "plugin": "scripted", "options": {"lines": ["Yes"]}},
        ],
        "engine": {"pipelines": [], "pipeline_files": pipeline_files(folder, "vad", "scripted")},
        "gateway": {"port": 0, "drain_timeout_s": 20},
        "sessions": {"listening": {"vad": "vad", "end_of_turn": None, "asr": None}, **sessions},
    }


def folder_in(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


async def talking(line: RawWebSocket, model: str = "long") -> None:
    """Take a call to the midst of an answer."""
    await line.upgrade(f"/v1/realtime?model={model}")
    for event in (UPDATE, append(600), COMMIT, CREATE):
        line.send_event(event)
    await line.until("response.output_audio.delta")


async def test_a_server_killed_at_any_moment_ends_its_calls_at_once_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    for round_ in range(2):
        folder = folder_in(tmp_path, f"round{round_}")
        async with server_process(folder, a_config(folder)) as server, asyncio.TaskGroup() as group:
            begun = asyncio.Semaphore(0)
            for _ in range(CALLS):
                group.create_task(hold_a_call(server.port, begun))
            for _ in range(chance.randrange(CALLS)):
                await begun.acquire()
            assert len(server.processes()) == 3
            server.kill()
            assert await server.ended() == -signal.SIGKILL
            await server.nobody_is_left()


async def hold_a_call(port: int, begun: asyncio.Semaphore) -> None:
    """Talk until the server is gone. That is no matter of a heartbeat: the system says so."""
    async with connected(port) as line:
        try:
            await talking(line)
            begun.release()
            await line.lost()
        except (asyncio.IncompleteReadError, ConnectionError):
            begun.release()


async def test_a_server_killed_while_its_models_load_leaves_no_process(tmp_path: Path) -> None:
    for lines in (1, 2):
        folder = folder_in(tmp_path, f"lines{lines}")
        async with server_process(folder, a_config(folder), wait=False) as server:
            await server.is_starting(lines)
            server.kill()
            await server.ended()
            await server.nobody_is_left()


async def test_a_call_of_a_server_that_was_killed_is_named_as_unknown_and_a_new_one_works(
    tmp_path: Path,
) -> None:
    folder = folder_in(tmp_path, "first")
    config = a_config(folder)
    async with server_process(folder, config) as server, connected(server.port) as line:
        await line.upgrade(DUPLEX_PATH.replace("echo", "short"))
        line.send_event({"type": "session.update", "session": {"turn_detection": None}})
        (created, *_) = await line.until("session.updated")
        port = server.port
        server.kill()
        await server.ended()
    folder = folder_in(tmp_path, "second")
    config = a_config(folder)
    config["gateway"]["port"] = port
    # The next one takes over the port at once, though connections of the first are not cold yet.
    async with server_process(folder, config) as server, connected(port) as line:
        await line.upgrade(DUPLEX_PATH.replace("echo", "short"))
        line.send_event(
            {
                "type": "session.resume",
                "session_id": created["session"]["id"],
                "resume_token": created["resume_token"],
                "last_received_server_event_seq": 2,
            }
        )
        refused = await line.event()
        assert refused["error"]["code"] == "invalid_resume_token"
        assert server.port == port
        async with connected(port) as other:
            await other.upgrade("/v1/realtime?model=short")
            other.send_event(UPDATE)
            await other.until("session.updated")
            await take_turn(other)


async def test_asked_to_stop_it_lets_a_call_end_and_asked_twice_it_goes_at_once(
    tmp_path: Path,
) -> None:
    """C59: not ready, nobody new; the call goes on; a second signal ends it with 1001; exit 0."""
    folder = folder_in(tmp_path, "drain")
    async with server_process(folder, a_config(folder)) as server:
        async with connected(server.port) as line:
            await talking(line)
            server.kill(signal.SIGTERM)
            await until_refused(server.port)
            await line.until("response.output_audio.delta")
            server.kill(signal.SIGTERM)
            goodbye = await line.goodbye()
            assert goodbye.code == 1001
        assert await server.ended() == 0
        await server.nobody_is_left()


async def test_c59_a_call_that_ends_while_the_server_waits_for_it_ends_in_order(
    tmp_path: Path,
) -> None:
    folder = folder_in(tmp_path, "drain")
    async with server_process(folder, a_config(folder)) as server:
        async with connected(server.port) as line:
            await talking(line, "short")
            await line.until("rate_limits.updated")
            server.kill(signal.SIGTERM)
            await until_refused(server.port)
            await take_turn(line)
            line.close()
            assert (await line.goodbye()).code == 1000
        assert await server.ended() == 0
        await server.nobody_is_left()


async def until_refused(port: int) -> None:
    """Wait until the server says that it takes nobody in, and see that it does not."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await asked(port, "/ready")).status != 503:
            pass
    for path in ("/v1/realtime?model=short", DUPLEX_PATH):
        refused = await asked(port, path, UPGRADE)
        assert refused.status == 503, refused
        for each in (answer, refused):
            assert each.json["error"]["code"] == "server_shutting_down"
            assert int(each.headers["Retry-After"]) > 0


async def asked(port: int, path: str, headers: Mapping[str, str] | None = None) -> Response:
    async with connected(port) as probe:
        return await probe.ask(path, headers)
