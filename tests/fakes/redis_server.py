"""A real Redis on a free port of this machine, which a test may kill and start again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.patience import PATIENCE_S


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start it, empty; returns when it takes connections."""
        self._process = await asyncio.create_subprocess_exec(
            *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
            *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
            stdout=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except ConnectionError:
                    await asyncio.sleep(0.01)
                    continue
                writer.close()
                await writer.wait_closed()
                return

    async def kill(self) -> None:
        """As when its machine is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def redis_server(folder: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
