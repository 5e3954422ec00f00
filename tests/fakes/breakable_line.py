"""A TCP line between a client and a server that a test can cut in each of the ways of real ones."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

_PIECE_BYTES = 4096

Ear = Callable[[bytes], None]
"""Told of what one side sends on one connection."""


def _hear_nothing(_piece: bytes) -> None:
    """Nobody listens in."""


class BreakableLine:
    """Passes connections on to a port of this machine; see ``breakable_line``."""

    def __init__(
        self, port: int, new_ear: Callable[[], Ear], new_client_ear: Callable[[], Ear]
    ) -> None:
        self.port = 0
        """Where it listens."""

        self.connections = 0
        """How many were made so far."""

        self.refuses = False
        """New connections are reset at once."""

        self._to_port = port
        self._new_ear = new_ear
        self._new_client_ear = new_client_ear
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    # Ways to break

    def reset(self, *, server_notices: bool = True) -> None:
        """Vanish without a word (RST); the server may be left in the belief that all is well."""
        self._cut(abort=True, server_notices=server_notices)

    def finish(self) -> None:
        """End every connection in the orderly way of TCP (FIN), without a word of WebSocket."""
        self._cut(abort=False, server_notices=True)

    def black_hole(self) -> None:
        """Let nothing through any more, and say so to nobody; new connections, too."""
        self._flows.clear()

    def heal(self) -> None:
        """Be a good line for whoever connects; those that fell into the hole stay there."""
        self._flows = asyncio.Event()
        self._flows.set()

    def _cut(self, *, abort: bool, server_notices: bool) -> None:
        pairs, self._pairs = self._pairs, []
        for client, server in pairs:
            for writer in (client, server) if server_notices else (client,):
                if abort:
                    _linger_not(writer)
                    writer.transport.abort()
                else:
                    writer.close()

    # The line

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on."""
        if self.refuses:
            _linger_not(writer)
            writer.transport.abort()
            return
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="line")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flows = self._flows
        try:
            await flows.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
            self._pairs.append((writer, far_writer))
            async with asyncio.TaskGroup() as group:
                up = _pass_on(reader, far_writer, flows, self._new_client_ear())
                group.create_task(up, name="line-up")
                down = _pass_on(far_reader, writer, flows, self._new_ear())
                group.create_task(down, name="line-down")
        finally:
            writer.transport.abort()

    async def end(self) -> None:
        """Let go of everything."""
        self._cut(abort=True, server_notices=True)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    flows: asyncio.Event,
    ear: Ear,
) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(_PIECE_BYTES):
            await flows.wait()
            ear(piece)
            writer.write(piece)
            await writer.drain()
    with suppress(ConnectionError, OSError):
        if flows.is_set():
            writer.close()


def _linger_not(writer: asyncio.StreamWriter) -> None:
    sock = cast(socket.socket | None, writer.get_extra_info("socket"))
    if sock is None:  # it has ended by itself
        return
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def breakable_line(
    port: int,
    new_ear: Callable[[], Ear] = lambda: _hear_nothing,
    new_client_ear: Callable[[], Ear] = lambda: _hear_nothing,
) -> AsyncIterator[BreakableLine]:
    """A line to a port of this machine.

    Args:
        new_ear: Makes somebody for each connection who listens in to the server.
        new_client_ear: The same for what the client sends.
    """
    line = BreakableLine(port, new_ear, new_client_ear)
    server = await asyncio.start_server(line.accept, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        await line.end()
        await server.wait_closed()
