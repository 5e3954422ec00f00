"""The channel: one WebSocket, as messages in by callback and messages out without waiting.

Two readers stand behind one interface. ``LoopChannel`` uses aiohttp's public ``receive``.
``CallbackChannel`` gets each message straight from aiohttp's parser, without a future and a task
switch per message, which is a quarter of the cost of a small message; it overrides internals of
aiohttp, so ``callback_channel_works`` checks at start that they are as expected. This module
must not know what is in a message.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
from collections.abc import Callable
from typing import Any, Protocol

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp._websocket.models import WebSocketError
from aiohttp._websocket.reader import WebSocketDataQueue, WebSocketReader
from aiohttp._websocket.writer import WebSocketWriter
from aiohttp.web_request import BaseRequest

HIGH_WATER_BYTES = 16 * 1024
"""Bytes in the transport at which we stop writing: what is in there, no interruption gets back."""

NOT_SENT_LOW_WATER_BYTES = 16 * 1024
"""The same for bytes that the kernel holds but has not sent (TCP_NOTSENT_LOWAT)."""

_FIN_TEXT = 0x81
_FIN_CLOSE = 0x88
_FIN_PONG = 0x8A

OnMessage = Callable[[bytes], None]


class Channel(Protocol):
    """One WebSocket that is open.

    Concurrency:
        Belongs to the event loop.
    """

    def can_send(self) -> bool:
        """Tell whether a message may be written now."""
        ...

    def send(self, message: bytes) -> None:
        """Write a text message; call only where ``can_send`` said yes."""
        ...

    async def wait_writable(self) -> None:
        """Wait until the transport has room again, or is closed."""
        ...

    async def run(self, on_message: OnMessage) -> None:
        """Hand each message to ``on_message`` until the peer, or ``close``, ends it."""
        ...

    async def close(self, code: int, reason: str, timeout_s: float) -> None:
        """Say goodbye and end ``run``, after ``timeout_s`` without waiting for an answer.

        ``reason`` is cut to what a close frame can hold.
        """
        ...


class _Base:
    """What both channels share: the way out."""

    def __init__(self, response: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self._response = response
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOT_SENT_LOW_WATER_BYTES)

    def can_send(self) -> bool:
        transport = self._transport
        return transport.get_write_buffer_size() < HIGH_WATER_BYTES and not transport.is_closing()

    def send(self, message: bytes) -> None:
        # RFC 6455 section 5.2: final text frame, unmasked, three forms of length.
        size = len(message)
        if size < 126:
            header = struct.pack("!BB", _FIN_TEXT, size)
        elif size < 65536:
            header = struct.pack("!BBH", _FIN_TEXT, 126, size)
        else:
            header = struct.pack("!BBQ", _FIN_TEXT, 127, size)
        self._transport.write(header + message)

    async def wait_writable(self) -> None:
        if not self._transport.is_closing():
            await self._response.drain()


class LoopChannel(_Base):
    """Reads with aiohttp's public API."""

    async def run(self, on_message: OnMessage) -> None:
        """Hand over each message until the WebSocket ends."""
        async for message in self._response:
            if message.type is WSMsgType.TEXT or message.type is WSMsgType.BINARY:
                on_message(message.data)

    async def close(self, code: int, reason: str, timeout_s: float) -> None:
        """Close in an orderly way; aiohttp knows the time-out from ``make_response``."""
        await self._response.close(code=code, message=_fitting(reason), drain=False)


class CallbackChannel(_Base):
    """Reads by callback from aiohttp's parser."""

    def __init__(self, response: CallbackResponse, transport: asyncio.Transport) -> None:
        super().__init__(response, transport)
        self._callback_response = response
        self._ended = asyncio.get_running_loop().create_future()
        self._closing = False
        self._on_message: OnMessage | None = None

    async def run(self, on_message: OnMessage) -> None:
        """Hand over each message until the WebSocket ends."""
        self._on_message = on_message
        self._callback_response.queue.start(self._take, self._end)
        await self._ended

    async def close(self, code: int, reason: str, timeout_s: float) -> None:
        """Write the close frame; the peer's answer ends ``run``."""
        if not self._closing:
            self._closing = True
            self._write_close(code, reason)
        done, _ = await asyncio.wait((self._ended,), timeout=timeout_s)
        if not done:
            self._transport.abort()
            self._end(None)

    def _take(self, message: WSMessage) -> None:
        kind = message.type
        if kind is WSMsgType.TEXT or kind is WSMsgType.BINARY:
            if not self._closing and self._on_message is not None:
                self._on_message(message.data)
        elif kind is WSMsgType.PING:
            self._transport.write(_pong(message.data))
        elif kind is WSMsgType.CLOSE:
            if not self._closing:
                self._closing = True
                self._write_close(message.data or WSCloseCode.OK, "")
            self._end(None)
        elif kind is not WSMsgType.PONG:
            self._end(None)

    def _end(self, exc: BaseException | None) -> None:
        if isinstance(exc, WebSocketError) and not self._closing:
            self._closing = True
            self._write_close(exc.code, str(exc))
        if not self._ended.done():
            self._ended.set_result(None)
        self._callback_response.finish()

    def _write_close(self, code: int, reason: str) -> None:
        if not self._transport.is_closing():
            body = struct.pack("!H", code) + _fitting(reason)
            self._transport.write(bytes((_FIN_CLOSE, len(body))) + body)


class CallbackQueue(WebSocketDataQueue):
    """Stands where aiohttp's parser puts messages, and hands them on at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink: Callable[[WSMessage], None] | None = None
        self._on_end: Callable[[BaseException | None], None] | None = None
        self._early: list[WSMessage] = []
        self._early_end: list[BaseException | None] = []

    def start(
        self,
        sink: Callable[[WSMessage], None],
        on_end: Callable[[BaseException | None], None],
    ) -> None:
        """Hand over what came before, and everything from now on."""
        self._sink, self._on_end = sink, on_end
        for message in self._early:
            sink(message)
        self._early.clear()
        for exc in self._early_end:
            on_end(exc)

    def feed_data(self, data: Any, size: int) -> None:
        """Take a message from the parser."""
        if self._sink is None:
            self._early.append(data)
        else:
            self._sink(data)

    def feed_eof(self) -> None:
        """The connection is lost."""
        self._ended(None)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """The peer broke the WebSocket protocol, or the message is too large."""
        self._ended(exc)

    def _ended(self, exc: BaseException | None) -> None:
        if self._on_end is None:
            self._early_end.append(exc)
        else:
            self._on_end(exc)


class CallbackResponse(web.WebSocketResponse):
    """A WebSocket whose parser feeds a ``CallbackQueue``."""

    queue: CallbackQueue

    def _post_start(
        self, request: BaseRequest, protocol: str | None, writer: WebSocketWriter
    ) -> None:
        self._ws_protocol = protocol
        self._writer = writer
        self._reset_heartbeat()
        assert self._loop is not None
        self.queue = CallbackQueue(request._protocol, HIGH_WATER_BYTES, loop=self._loop)
        self._reader = self.queue
        self._waiting = True
        self._parser = WebSocketReader(
            self.queue, self._max_msg_size, compress=False, decode_text=False
        )
        request.protocol.set_parser(self._parser, data_received_cb=self._on_data_received)
        request.protocol.keep_alive(False)

    def finish(self) -> None:
        """The WebSocket is over: aiohttp has nothing left to do when the handler returns."""
        self._set_closed()
        self._parser = None


def make_response(
    private: bool, *, heartbeat_s: float, max_message_bytes: int, protocols: tuple[str, ...]
) -> web.WebSocketResponse:
    """Make the response that upgrades a request, without permessage-deflate.

    Compression would cost nearly four times the CPU of everything else.
    """
    kind = CallbackResponse if private else web.WebSocketResponse
    return kind(
        heartbeat=heartbeat_s,
        max_msg_size=max_message_bytes,
        compress=False,
        decode_text=False,
        protocols=protocols,
    )


def make_channel(response: web.WebSocketResponse, transport: asyncio.Transport) -> Channel:
    """Return the channel for an upgraded request."""
    if isinstance(response, CallbackResponse):
        return CallbackChannel(response, transport)
    return LoopChannel(response, transport)


def callback_channel_works() -> bool:
    """Tell whether aiohttp's internals are those that ``CallbackResponse`` was written for."""
    start = getattr(web.WebSocketResponse, "_post_start", None)
    if start is None or list(inspect.signature(start).parameters) != [
        "self",
        "request",
        "protocol",
        "writer",
    ]:
        return False
    return all(
        hasattr(owner, name)
        for owner, name in (
            (web.WebSocketResponse, "_reset_heartbeat"),
            (web.WebSocketResponse, "_on_data_received"),
            (web.WebSocketResponse, "_set_closed"),
            (WebSocketDataQueue, "feed_data"),
            (WebSocketDataQueue, "feed_eof"),
            (WebSocketDataQueue, "set_exception"),
        )
    )


def _fitting(reason: str) -> bytes:
    """Cut a close reason to the 123 bytes that a close frame holds, at a character."""
    return reason.encode()[:123].decode(errors="ignore").encode()


def _pong(data: bytes) -> bytes:
    return bytes((_FIN_PONG, len(data))) + bytes(data)
