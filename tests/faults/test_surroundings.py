"""What the machine around the server may do: a disk that fills up, a clock that jumps."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from duologue.app import running_app
from duologue.core.clock import SystemClock
from duologue.gateway.settings import GatewaySettings
from duologue.telemetry.settings import TelemetrySettings
from tests.cases.test_lost_connections import resumed
from tests.faults.gateway_line import (
    COMMIT,
    CREATE,
    LONG,
    SHORT,
    Server,
    append,
    call,
    line_settings,
    take_turn,
    until,
)
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import connected

DISK_BYTES = 96 * 1024
DAY_S = 86_400.0


@contextmanager
def small_disk(folder: Path, size_bytes: int = DISK_BYTES) -> Iterator[None]:
    """Let a folder be a disk of its own that is soon full.

    Who may not mount one gets a limit of the size of files, which is an error of the system too.
    """
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    if (
        os.geteuid() == 0
        and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    ):
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.fixture
def full_soon(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder):
        yield folder


async def test_a_full_disk_ends_recordings_and_no_call(full_soon: Path) -> None:
    telemetry = TelemetrySettings(record="content", record_folder=full_soon / "calls")
    settings = line_settings().model_copy(update={"telemetry": telemetry})
    with capture_logs() as logs:
        async with running_app(settings) as app:
            server = Server(app)
            async with call(server.port) as line:
                while not any(each["event"] == "recordings_stopped" for each in logs):
                    line.send_event(append(1000))
                    line.send_event(COMMIT)
                    await line.until("conversation.item.done")
                await take_turn(line)
            await server.takes_a_call()
            await server.is_clean()
    stopped = [each for each in logs if each["event"] == "recordings_stopped"]
    assert [each["log_level"] for each in stopped] == ["error"], "told once"
    assert [each["error"] for each in stopped] == ["OSError"]


class JumpingClock(SystemClock):
    """Somebody sets the wall clock, or a time server does."""

    def __init__(self) -> None:
        super().__init__()
        self.jump_s = 0.0

    def wall_time(self) -> float:
        return super().wall_time() + self.jump_s


async def test_a_wall_clock_that_jumps_ends_no_call_and_moves_no_deadline() -> None:
    clock = JumpingClock()
    async with running_app(line_settings(GatewaySettings(heartbeat_s=30.0)), clock=clock) as app:
        server = Server(app)
        async with call(server.port, LONG) as line, connected(server.port) as lost:
            for event in (append(600), COMMIT, CREATE):
                line.send_event(event)
            await line.until("response.output_audio.delta")
            await lost.upgrade(f"/v1/duplex?model={SHORT}&autostart=0")
            lost.send_event({"type": "session.update", "session": {"turn_detection": None}})
            (created, *_) = await lost.until("session.updated")
            lost.reset()
            await until(lambda: app.sessions.detached == 1)
            for jump_s in (DAY_S, -DAY_S, 400 * DAY_S, 0.0):
                clock.jump_s = jump_s
                await line.until("response.output_audio.delta")
                await server.takes_a_call()
                assert app.sessions.detached == 1, "its grace is not over"
            async with connected(server.port) as back:
                path = f"/v1/duplex?model={SHORT}&autostart=0"
                greeting = await resumed(back, created, created["resume_token"], 2, path)
                assert greeting["type"] == "session.resumed"
                back.send_event({"type": "session.close"})
                await back.goodbye()
            line.send_event({"type": "response.cancel"})
            done = (await line.until("response.done"))[-1]
            assert done["response"]["status_details"]["reason"] == "client_cancelled"
        async with asyncio.timeout(PATIENCE_S):
            await server.is_clean()
