"""A server in a process of its own, which a test may kill as the system would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.patience import until

ROOT = Path(__file__).parents[2]
START_S = 240.0
READY = "ready: "
KEPT_LINES = 1000
LONGEST_LINE_BYTES = 1024 * 1024


class ServerProcess:
    """One server.

    What it says is read for as long as it lives: a pipe that nobody empties fills, and stops it.

    Args:
        mark: A folder that stands in the environment of the server and of all its workers, and of
            nobody else.
    """

    def __init__(self, process: asyncio.subprocess.Process, mark: Path) -> None:
        self.url = ""
        self.said: deque[str] = deque(maxlen=KEPT_LINES)
        self.pid = process.pid
        self._process = process
        self._mark = f"{mark}".encode()
        self._lines = 0
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="read what a server says")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def is_ready(self) -> None:
        """Wait until it has said where it is."""
        await self._has_said(lambda: bool(self.url))

    async def is_starting(self, lines: int) -> None:
        """Wait until it has said some lines, or is ready."""
        await self._has_said(lambda: self._lines >= lines or bool(self.url))

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        self._process.send_signal(sig)

    async def ended(self) -> int:
        """Wait until it is gone, and with it all workers that write where it does."""
        async with asyncio.timeout(START_S):
            await self._reading
            return await self._process.wait()

    def processes(self) -> list[int]:
        """The server and its workers, those that are dead and not buried left out."""
        return [pid for pid in _all_processes() if self._mark in _environment(pid)]

    async def nobody_is_left(self) -> None:
        """Wait until its workers are gone too."""
        await until(lambda: not self.processes())

    async def _has_said(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(START_S):
            while not enough():
                assert not self._reading.done(), f"the server is gone: {''.join(self.said)}"
                self._news.clear()
                await self._news.wait()

    async def _read(self) -> None:
        assert self._process.stderr is not None
        try:
            async for line in self._process.stderr:
                self._lines += 1
                self.said.append(line.decode())
                if self.said[-1].startswith(READY):
                    self.url = self.said[-1].split()[1]
                self._news.set()
        finally:
            self._news.set()


@asynccontextmanager
async def server_process(
    folder: Path, config: Mapping[str, Any], *, wait: bool = True
) -> AsyncIterator[ServerProcess]:
    """Run ``duologue serve``; whatever is left of it at the end is killed.

    Args:
        folder: An empty one of its own.
        wait: Until it is ready.
    """
    path = folder / "duologue.yaml"
    path.write_text(yaml.safe_dump(dict(config)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "duologue", "serve", "--config", str(path)),
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE_BYTES,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
    )
    server = ServerProcess(process, folder)
    try:
        if wait:
            await server.is_ready()
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await server.ended()


def _all_processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
