"""``duologue serve`` in processes of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

START_S = 60.0


@dataclass
class Served:
    """The server.

    Args:
        said: Lines that it has written to the standard error so far.
    """

    process: asyncio.subprocess.Process
    url: str = ""
    said: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[int]:
        """Processes that it has started, the oldest first."""
        return sorted(children(self.process.pid))

    async def end(self) -> int:
        """Ask it to stop, and wait until it has."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        self.said += (await self.process.stderr.read()).decode().splitlines()
        return await self.process.wait()


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    task = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in task.read_text().split()]


@asynccontextmanager
async def served(
    folder: Path, settings: Mapping[str, Any], edges: int = 2
) -> AsyncIterator[Served]:
    """Start a server, and stop it at the end."""
    config = folder / "served.yaml"
    config.write_text(yaml.safe_dump(settings))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "duologue", "serve", "--config", str(config), "--edges", str(edges)),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    server = Served(process)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START_S):
            async for line in process.stderr:
                server.said.append(line.decode().rstrip())
                if server.said[-1].startswith("ready: "):
                    server.url = server.said[-1].split()[1]
                    break
        yield server
    finally:
        await server.end()
