"""A WebSocket client that does exactly what a test says, also what no decent client would do."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from tests.patience import PATIENCE_S

SMALL_BUFFER_BYTES = 4096

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The answer to that key; both are the example of RFC 6455."""


@dataclass(frozen=True)
class Frame:
    """A frame from the server."""

    opcode: int
    payload: bytes
    fin: bool = True

    @property
    def code(self) -> int:
        """The code of a close frame."""
        return int(struct.unpack("!H", self.payload[:2])[0])

    @property
    def reason(self) -> str:
        """The text of a close frame."""
        return self.payload[2:].decode()


@dataclass(frozen=True)
class Response:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def masked(opcode: int, payload: bytes = b"", *, fin: bool = True, first_bits: int = 0) -> bytes:
    """A frame as clients write them."""
    size = len(payload)
    head = bytes([(0x80 if fin else 0) | first_bits | opcode])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += struct.pack("!BH", 0x80 | 126, size)
    else:
        head += struct.pack("!BQ", 0x80 | 127, size)
    mask = os.urandom(4)
    key = int.from_bytes(mask * (size // 4 + 1))
    shift = 8 * (len(mask) * (size // 4 + 1) - size)
    hidden = (int.from_bytes(payload) ^ (key >> shift)).to_bytes(size) if size else b""
    return head + mask + hidden


def request(path: str, headers: Mapping[str, str], method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class RawWebSocket:
    """One TCP connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        sock: socket.socket,
        *,
        is_deaf: bool = False,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._socket = sock
        self._is_deaf = is_deaf
        self.response = Response(0, {})
        self.patience_s = PATIENCE_S
        """How long a frame is waited for."""

    async def ask(
        self,
        path: str = "/",
        headers: Mapping[str, str] | None = None,
        *,
        behind: bytes = b"",
        method: str = "GET",
    ) -> Response:
        """Send a request, with bytes right behind it in the same segment, and read the answer."""
        host = {"Host": "127.0.0.1"}
        self.writer.write(request(path, {**host, **(headers or {})}, method) + behind)
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            found = {name: value for name, _, value in (line.partition(": ") for line in lines)}
            body = await self.reader.readexactly(int(found.get("Content-Length", 0)))
        self.response = Response(int(first.split()[1]), found, body)
        return self.response

    async def upgrade(self, path: str = "/", *, behind: bytes = b"", **more: str) -> None:
        """Open the WebSocket; ``more`` are headers, with underscores for hyphens."""
        extra = {name.replace("_", "-"): value for name, value in more.items()}
        answer = await self.ask(path, {**UPGRADE, **extra}, behind=behind)
        assert answer.status == 101, answer
        if self._is_deaf:
            self.stop_reading()

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, opcode: int, payload: bytes = b"", **how: Any) -> None:
        self.writer.write(masked(opcode, payload, **how))

    def send_event(self, event: Mapping[str, Any]) -> None:
        self.send(TEXT, json.dumps(event).encode())

    def close(self, code: int = 1000, reason: str = "") -> None:
        self.send(CLOSE, struct.pack("!H", code) + reason.encode())

    async def frame(self) -> Frame:
        """The next frame."""
        async with asyncio.timeout(self.patience_s):
            first, second = await self.reader.readexactly(2)
            assert not second & 0x80, "a server must not mask"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
            payload = await self.reader.readexactly(size)
        return Frame(first & 0x0F, payload, bool(first & 0x80))

    async def event(self) -> dict[str, Any]:
        """The next event; pings are passed by."""
        while True:
            frame = await self.frame()
            if frame.opcode == TEXT:
                event: dict[str, Any] = json.loads(frame.payload)
                return event
            assert frame.opcode == PING, frame

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """All events up to the first of a kind, which is the last of them."""
        events = [await self.event()]
        while events[-1]["type"] != kind:
            events.append(await self.event())
        return events

    async def goodbye(self) -> Frame:
        """The server's close frame; all before it is passed by."""
        while (frame := await self.frame()).opcode != CLOSE:
            pass
        return frame

    async def end(self) -> bytes:
        """What else comes until the server ends the connection in an orderly way."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    async def lost(self) -> int:
        """Wait until the connection has ended in any way; how many bytes came before that."""
        size = 0
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                while piece := await self.reader.read(65536):
                    size += len(piece)
        return size

    def stop_reading(self) -> None:
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def go_on_reading(self) -> None:
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    def finish(self) -> None:
        """Send no more (FIN)."""
        if self.writer.can_write_eof():
            self.writer.write_eof()
        else:  # under TLS, so without a word of it
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Vanish without a word (RST)."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@asynccontextmanager
async def connected(
    port: int, *, is_deaf: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawWebSocket]:
    """Connect to a port of this machine.

    Args:
        is_deaf: Read the answer to the handshake and then nothing; the kernel takes little.
        tls: Whom to trust, where the port speaks TLS.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if is_deaf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=name)
    try:
        yield RawWebSocket(reader, writer, sock, is_deaf=is_deaf)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()
