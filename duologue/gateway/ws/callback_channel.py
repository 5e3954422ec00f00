"""The channel that gets each message straight from aiohttp's parser, by callback.

Without a future and a task switch per message, which is a quarter of the cost of a small one.
What it uses of aiohttp's inside is here and nowhere else: ``set_parser`` of the connection, the
parser with the queue that it feeds, and that nothing but ``data_received`` of an upgraded
connection looks at what comes. ``callback_reader_works`` tries them out at start. This
module must not know what is in a message.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from aiohttp import WSMsgType, web
from aiohttp._websocket.models import WebSocketError
from aiohttp._websocket.reader import WebSocketDataQueue, WebSocketReader
from aiohttp.web_protocol import RequestHandler

from duologue.gateway.ws.channel import (
    BINARY_MESSAGE,
    TEXT_MESSAGE,
    Channel,
    ChannelTiming,
    OnMessage,
)
from duologue.gateway.ws.handshake import answer
from duologue.gateway.ws.heartbeat import Beat, Heartbeat
from duologue.gateway.ws.read_turns import PacedParser, ReadTurns
from duologue.gateway.ws.reading_gate import ReadingGate


class Upgraded(web.StreamResponse):
    """The answer that accepts a handshake. The channel writes all that follows."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing: the channel has ended the connection."""


async def accept(
    request: web.Request, protocol: str | None, max_message_bytes: int, timing: ChannelTiming
) -> tuple[web.StreamResponse, Channel]:
    """Answer a checked handshake, and select ``protocol``.

    Raises:
        ConnectionError: The client is gone.
    """
    response = Upgraded(status=101, headers=answer(request.headers, protocol))
    response.force_close()
    await response.prepare(request)
    if request.transport is None:
        raise ConnectionResetError("the client left during the handshake")
    return response, CallbackChannel(request, request.transport, max_message_bytes, timing)


class CallbackChannel(Channel):
    """Reads by callback."""

    __slots__ = ("_gate", "_max_message_bytes", "_protocol", "_turns")

    def __init__(
        self,
        request: web.Request,
        transport: asyncio.Transport,
        max_message_bytes: int,
        timing: ChannelTiming,
    ) -> None:
        super().__init__(transport, request.writer, timing)
        self._protocol: RequestHandler | None = request.protocol
        self._turns: ReadTurns = timing.turns
        self._gate = ReadingGate(transport)
        self._max_message_bytes = max_message_bytes

    def hold(self, on: bool) -> None:
        """Read no further for now, so that the peer waits; or read on."""
        if on:
            self._gate.hold("pressure")
        else:
            self._heard()  # who was not read was not silent
            self._gate.release("pressure")

    async def _read(self) -> None:
        protocol, self._protocol = self._protocol, None
        assert protocol is not None, "a channel is run once"
        queue = CallbackQueue(protocol, self)
        parser = UpgradedProtocol(
            protocol,
            make_parser(queue, self._max_message_bytes),
            self._gate,
            self._turns,
            self._heartbeat,
            self._now,
        )
        protocol.set_parser(parser)  # type: ignore[arg-type]
        self._transport.set_protocol(parser)
        del protocol, queue, parser  # the connection holds them, as long as there is one
        await self._read_out

    def _beat(self, now: float) -> Beat:
        if self._gate.is_shut:
            self._heard()  # an answer would lie unread
        return super()._beat(now)


class UpgradedProtocol(PacedParser, asyncio.Protocol):
    """Takes what comes once the connection is a WebSocket; all else is aiohttp's as before."""

    __slots__ = ("_protocol",)

    def __init__(
        self,
        protocol: RequestHandler,
        parser: WebSocketReader,
        gate: ReadingGate,
        turns: ReadTurns,
        heartbeat: Heartbeat,
        now: Callable[[], float],
    ) -> None:
        super().__init__(parser, gate, turns, heartbeat, now, protocol.close)
        self._protocol = protocol

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take what had come behind the handshake."""
        self.data_received(data)
        return False, b""

    def eof_received(self) -> None:
        """Nothing more comes."""
        self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """The transport is full."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The transport has room again."""
        self._protocol.resume_writing()


class Taker(Protocol):
    """Takes what the parser finds; a channel is one."""

    on_message: OnMessage
    """Takes the content of each message."""

    def on_control(self, kind: WSMsgType, data: Any) -> None:
        """Take any other frame."""
        ...

    def on_failure(self, exc: BaseException) -> None:
        """What came cannot be read, or taking it raised."""
        ...

    def on_eof(self) -> None:
        """The connection is lost."""
        ...


class CallbackQueue(WebSocketDataQueue):
    """Stands where aiohttp's parser puts messages, and hands them on at once."""

    def __init__(self, protocol: RequestHandler | None, taker: Taker) -> None:
        # Its own limit is for messages that wait, and here none ever does.
        super().__init__(protocol, limit=1, loop=None)  # type: ignore[arg-type]
        self._taker = taker

    def feed_data(self, data: Any, size: int) -> None:
        """Take a message from the parser."""
        kind = data[0]
        if kind is TEXT_MESSAGE or kind is BINARY_MESSAGE:
            on_message = self._taker.on_message
            on_message(data[1])
        else:
            self._taker.on_control(kind, data[1])

    def feed_eof(self) -> None:
        """The connection is lost."""
        self._taker.on_eof()

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """The peer broke the WebSocket protocol, or taking a message raised."""
        self._taker.on_failure(exc)


def make_parser(queue: CallbackQueue, max_message_bytes: int) -> WebSocketReader:
    """Return a parser that feeds ``queue``."""
    return WebSocketReader(queue, max_message_bytes, compress=False, decode_text=False)


def callback_reader_works() -> bool:
    """Tell whether aiohttp's inside is as this module needs it, by trying it out."""
    if list(inspect.signature(RequestHandler.set_parser).parameters)[1:] != [
        "parser",
        "data_received_cb",
    ]:
        return False
    seen = _Noted()
    queue = CallbackQueue(None, seen)
    parser = make_parser(queue, 8)
    # "yes" under the mask 0 in two pieces, a close with the code 1000, then more than 8 bytes.
    for piece in (b"\x81\x83\0\0\0\0y", b"es\x88\x82\0\0\0\0\x03\xe8", b"\x82\x89\0\0\0\0"):
        parser.feed_data(piece)
    queue.feed_eof()
    expected = [b"yes", (WSMsgType.CLOSE, 1000), WebSocketError, "eof"]
    return seen.all == expected


class _Noted:
    """Notes what it takes."""

    def __init__(self) -> None:
        self.all: list[object] = []
        self.on_message: OnMessage = self.all.append

    def on_control(self, kind: WSMsgType, data: Any) -> None:
        self.all.append((kind, data))

    def on_failure(self, exc: BaseException) -> None:
        self.all.append(type(exc))

    def on_eof(self) -> None:
        self.all.append("eof")
