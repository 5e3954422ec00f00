"""A server in a process of its own, which a test may kill as the system would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.patience import until

ROOT = Path(__file__).parents[2]
START_S = 240.0
READY = "ready: "


class ServerProcess:
    """One server.

    Args:
        mark: A folder that stands in the environment of the server and of all its workers, and of
            nobody else.
    """

    def __init__(self, process: asyncio.subprocess.Process, mark: Path) -> None:
        self.url = ""
        self.said: list[str] = []
        self.pid = process.pid
        self._process = process
        self._mark = f"{mark}".encode()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def is_ready(self) -> None:
        """Wait until it has said where it is."""
        async with asyncio.timeout(START_S):
            while not self.url:
                await self._line()

    async def is_starting(self, lines: int) -> None:
        """Wait until it has said some lines, or is ready."""
        async with asyncio.timeout(START_S):
            while len(self.said) < lines and not self.url:
                await self._line()

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        self._process.send_signal(sig)

    async def ended(self) -> int:
        """Wait until it is gone; what else it says is read meanwhile."""
        async with asyncio.timeout(START_S):
            await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode

    def processes(self) -> list[int]:
        """The server and its workers, those that are dead and not buried left out."""
        return [pid for pid in _all_processes() if self._mark in _environment(pid)]

    async def nobody_is_left(self) -> None:
        """Wait until its workers are gone too."""
        await until(lambda: not self.processes())

    async def _line(self) -> None:
        assert self._process.stderr is not None
        line = (await self._process.stderr.readline()).decode()
        assert line, f"the server is gone: {''.join(self.said)}"
        self.said.append(line)
        if line.startswith(READY):
            self.url = line.split()[1]


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
            await process.communicate()


def _all_processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
