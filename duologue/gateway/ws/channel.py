"""The channel: one open WebSocket, as whole messages in and out.

Everything except reading is here: frames out, a bound on what lies in the transport, signs of
life, and the ways in which a WebSocket ends. A subclass reads, in ``_read``, and may be told to
wait with it, by ``hold``. This module must not
know what is in a message.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import WebSocketError

from duologue.core.clock import Clock
from duologue.core.wheel import TimerWheel
from duologue.gateway.ws.frames import (
    BINARY,
    GOING_AWAY,
    TEXT,
    answering_code,
    close_frame,
    message_frame,
    ping_frame,
    pong_frame,
)
from duologue.gateway.ws.heartbeat import Beat, Heartbeat
from duologue.gateway.ws.read_turns import ReadTurns
from duologue.telemetry import get_logger

HIGH_WATER_BYTES = 16 * 1024
"""Bytes in the transport at which we stop writing: what is in there, no interruption gets back."""

NOT_SENT_LOW_WATER_BYTES = 16 * 1024
"""The same for bytes that the kernel holds but has not sent (TCP_NOTSENT_LOWAT)."""

MAX_WAITING_PONG_BYTES = 64 * 1024
"""Pongs go past the high water, up to here: a peer that only pings must not fill our memory."""

_INTERNAL_ERROR = 1011

TEXT_MESSAGE = WSMsgType.TEXT
BINARY_MESSAGE = WSMsgType.BINARY
"""Compared with for every message, and members of an enumeration are slow to look up."""

OnMessage = Callable[[bytes], None]

_log = get_logger("gateway")


@dataclass(frozen=True, slots=True)
class ChannelTiming:
    """When things happen on channels; they share one.

    Args:
        heartbeat_s: A ping after so long without data from the peer; see ``Heartbeat``.
        close_timeout_s: How long a peer has to let go after our goodbye.
        turns: Where channels wait that have read much at once.
    """

    clock: Clock
    wheel: TimerWheel
    heartbeat_s: float
    close_timeout_s: float
    turns: ReadTurns = field(default_factory=ReadTurns)


class Channel(ABC):
    """One WebSocket that is open.

    Life: ``run`` until either side ends it, then ``finish``, and ``release`` whatever happens.

    Concurrency:
        Belongs to the event loop. Only ``run``, ``finish`` and ``writable`` wait.
    """

    __slots__ = (
        "__weakref__",
        "_broken",
        "_close_timeout_s",
        "_expires_at",
        "_gone",
        "_heartbeat",
        "_now",
        "_open",
        "_read_out",
        "_transport",
        "_wheel",
        "_writer",
        "on_message",
    )

    def __init__(
        self, transport: asyncio.Transport, writer: AbstractStreamWriter, timing: ChannelTiming
    ) -> None:
        self._transport = transport
        self._writer = writer
        self._now = timing.clock.now
        self._wheel = timing.wheel
        self._close_timeout_s = timing.close_timeout_s
        self._heartbeat = Heartbeat(timing.heartbeat_s, timing.clock.now())
        self._open = True
        self._broken = False
        self._expires_at: float | None = None
        loop = asyncio.get_running_loop()
        self._read_out: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self.on_message: OnMessage = _ignore
        """Takes the content of each message, while there is somebody to take it."""

        # One below the mark, since a transport pauses above its limit and we stop at it: whenever
        # ``can_send`` says no, a drain really waits.
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES - 1)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOT_SENT_LOW_WATER_BYTES)

    async def run(self, on_message: OnMessage) -> None:
        """Hand each message to ``on_message`` until the peer, ``close`` or time ends it.

        An exception from ``on_message`` is logged and closes the WebSocket with 1011.
        """
        if self._open:
            self.on_message = on_message
        self._set_timer()
        try:
            await self._read()
        except asyncio.CancelledError:
            self.close(GOING_AWAY, "")
            raise
        finally:
            self.on_message = _ignore

    def can_send(self) -> bool:
        """Tell whether a message may be written now."""
        return (
            self._open
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() < HIGH_WATER_BYTES
        )

    def send(self, message: bytes) -> None:
        """Write a text message; call only where ``can_send`` said yes."""
        self._transport.write(message_frame(TEXT, message))

    def send_binary(self, message: bytes) -> None:
        """Write a binary message; call only where ``can_send`` said yes."""
        self._transport.write(message_frame(BINARY, message))

    async def writable(self) -> bool:
        """Wait until a message may be written; ``False`` once none ever will be."""
        while not self.can_send():
            if not self._open or self._transport.is_closing():
                return False
            try:
                await self._writer.drain()
            except ConnectionError:
                return False
        return True

    @abstractmethod
    def hold(self, on: bool) -> None:
        """Read no further for now, so that the peer waits; or read on."""

    def close(self, code: int, reason: str) -> None:
        """Say goodbye, once: write the close frame. The peer's answer, or time, ends ``run``."""
        if self._open:
            self._shut()
            self._write(close_frame(code, reason))
            self.hold(False)  # its answer is to be read
            self.expire()

    def expire(self) -> None:
        """Cut the connection after the close time-out, however far its end has come by then.

        For a peer that does not read: what is written then, a goodbye too, never gets through.
        """
        if self._expires_at is None:
            self._expires_at = self._now() + self._close_timeout_s
            self._set_timer()

    async def finish(self) -> None:
        """Wait, after ``run``, until the connection may be dropped.

        A peer that broke the protocol is still sending. To drop the connection on unread data
        would reset it, and the peer might never see why; so it is told that we send no more, and
        read until it lets go too.
        """
        if self._broken and not self._transport.is_closing():
            if self._transport.can_write_eof():
                self._transport.write_eof()
            await self._until_gone()

    def release(self) -> None:
        """Drop the connection. What is still to be flushed has until the close time-out."""
        self._shut()
        del self._writer  # it refers to the connection, which refers to us: a circle
        if not self._transport.is_closing():
            self._transport.close()
        if _unsent_bytes(self._transport):
            self.expire()
        else:
            self._wheel.set(self, None)

    def on_timer(self) -> None:
        """The wheel's call: ask for a sign of life, or cut the connection."""
        now = self._now()
        if self._expires_at is not None:
            if now >= self._expires_at:
                self._cut()
                return
        else:
            beat = self._beat(now)
            if beat is Beat.GIVE_UP:
                self._cut()
                return
            if beat is Beat.PING:
                self._write(ping_frame())
        self._set_timer()

    # For subclasses

    @abstractmethod
    async def _read(self) -> None:
        """Call ``on_message`` and ``on_control`` with what comes, until one of the others was."""

    async def _until_gone(self) -> None:
        """Wait until the connection is lost or cut."""
        await self._gone

    def _heard(self) -> None:
        """Some bytes have come."""
        self._heartbeat.heard_at = self._now()

    def on_control(self, kind: WSMsgType, data: Any) -> None:
        """Deal with a frame that is no message; ``data`` is bytes, or the code of a close frame."""
        if kind is WSMsgType.PING:
            if self._open and self._transport.get_write_buffer_size() < MAX_WAITING_PONG_BYTES:
                self._write(pong_frame(data))
        elif kind is WSMsgType.CLOSE:
            self.close(answering_code(data), "")
            self.on_eof()

    def on_eof(self) -> None:
        """The peer has said goodbye, or is gone."""
        self._shut()
        _resolve(self._read_out)
        _resolve(self._gone)

    def on_failure(self, exc: BaseException) -> None:
        """What came cannot be read, or reading it raised."""
        self._broken = True
        _resolve(self._read_out)
        if isinstance(exc, WebSocketError):
            self.close(exc.code, str(exc))
        else:
            _log.error("message_handler_crashed", exc_info=exc)
            self.close(_INTERNAL_ERROR, "")

    def _beat(self, now: float) -> Beat:
        return self._heartbeat.on_timer(now)

    def _next_beat(self) -> float | None:
        return self._heartbeat.next_deadline()

    # Private

    def _shut(self) -> None:
        """Nothing more is said, and nobody listens."""
        self._open = False
        self.on_message = _ignore

    def _write(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame)

    def _cut(self) -> None:
        self._wheel.set(self, None)
        self._transport.abort()
        self.on_eof()

    def _set_timer(self) -> None:
        expires_at = self._expires_at
        self._wheel.set(self, self._next_beat() if expires_at is None else expires_at)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _ignore(_message: bytes) -> None:
    """Nobody is listening any more."""


def _unsent_bytes(transport: asyncio.Transport) -> int:
    """Return what is still to be flushed."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:
        # One with TLS that was closed once more after it was lost has let go of what it would ask.
        return 0
