"""A link on a socket: frames in, frames out, in few writes, and signs of life.

What there is to say leaves at once while there is little of it. On a busy link it waits for a
moment, together with what comes up meanwhile: a write, and the other process woken by it, costs
more than the messages in it.

This module must not know what is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import msgspec

from duologue.core.clock import Clock
from duologue.core.errors import DuologueError, EngineError
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.engines.framing import FrameReader, encode_messages
from duologue.hosts.handshake import MAX_HANDSHAKE_BYTES
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.messages import Beat, Goodbye, LinkMessage
from duologue.hosts.outbox import Outbox
from duologue.hosts.write_pace import WritePace
from duologue.telemetry import get_logger

HIGH_WATER_BYTES = 256 * 1024
"""Bytes in the transport at which no further output is pulled: what is in there no interruption
overtakes."""

BEAT_S = 2.0
SILENCE_S = 7.0
"""A link on which nothing came for so long is lost: the other machine may be."""

STALL_S = 0.1
"""A timer of ours that is later than this says that this process stood still."""

_decode = msgspec.msgpack.Decoder(list[LinkMessage]).decode


class Handshake(Protocol):
    """Says who is there; see ``hosts.handshake``."""

    peer: str | None

    def begin(self) -> list[LinkMessage]:
        """Return what to say first."""
        ...

    def take(self, message: LinkMessage) -> list[LinkMessage]:
        """Take a message; raises ``DuologueError`` where there shall be no link."""
        ...


class Link(asyncio.Protocol):
    """One link, and on the wheel for its signs of life.

    Args:
        make_end: Called once it is known who is there; returns the end that takes over.
        on_gone: Called once, when the link is lost or was refused, with why.
        on_connected: Called when there is a connection; where TLS fails there never is one.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        handshake: Handshake,
        make_end: Callable[[Link, Outbox], LinkEnd],
        on_gone: Callable[[Link, str], None],
        clock: Clock,
        wheel: TimerWheel,
        on_connected: Callable[[Link], None] = lambda _link: None,
        pace: WritePace | None = None,
    ) -> None:
        self._on_connected = on_connected
        self.end: LinkEnd | None = None
        self._handshake = handshake
        self._make_end = make_end
        self._on_gone = on_gone
        self._now = clock.now
        self._wheel = wheel
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._outbox = Outbox(self._write_soon)
        self._heard_at = clock.now()
        self._pace = pace or WritePace()
        self._write_due: asyncio.Handle | None = None
        self._beat_at = clock.now() + BEAT_S
        self._handshake_bytes = 0
        self._why = "the connection was closed"
        self._barrier = CrashBarrier(self._crashed)

    @property
    def peer(self) -> str:
        """Name of the other end; empty while that is not known."""
        return self._handshake.peer or ""

    def close(self, reason: str) -> None:
        """Say why, and end the link once that is written."""
        if self._transport is not None and not self._transport.is_closing():
            self._why = reason
            self._write([*self._outbox.take(), Goodbye(reason)])
            self._transport.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self._on_connected(self)
        self._write(self._handshake.begin())
        self._beat_at = self._now() + BEAT_S
        self._wheel.set(self, self._beat_at)

    def data_received(self, data: bytes) -> None:
        """Take all messages that the data completes."""
        self._heard_at = self._now()
        try:
            if self.end is None:
                self._handshake_bytes += len(data)
                if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
                    raise EngineError("the handshake is longer than any that is one")
            messages = [message for body in self._frames.feed(data) for message in _decode(body)]
            if self.end is None:
                messages = self._shake_hands(messages)
            if self.end is not None and messages:
                self._barrier.run(self._take, messages)
        except (DuologueError, msgspec.MsgspecError) as exc:
            reason = exc.message if isinstance(exc, DuologueError) else "it cannot be read"
            get_logger("hosts").warning("link_refused", peer=self.peer, reason=reason)
            self.close(reason)

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self._outbox.writable = False

    def resume_writing(self) -> None:
        """It does again."""
        self._outbox.writable = True
        if self.end is not None:
            self.end.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Everything on the link ends."""
        self._wheel.set(self, None)
        self._transport = None
        if self._write_due is not None:
            self._write_due.cancel()
        if self.end is not None:
            self.end.lost()
        self._on_gone(self, self._why)

    # On the wheel

    def on_timer(self) -> None:
        """Give a sign of life, and look for one."""
        now = self._now()
        if self._transport is None:
            return
        # While this process stood still nothing was read, whatever has come: that is no silence.
        stood_still_s = now - self._beat_at
        if stood_still_s > STALL_S:
            self._heard_at = min(now, self._heard_at + stood_still_s)
        if now - self._heard_at >= SILENCE_S:
            self._why = f"nothing came for {SILENCE_S:g} s"
            self._transport.abort()
            return
        if self.end is not None:
            self._outbox.put(Beat())
        self._beat_at = now + BEAT_S
        self._wheel.set(self, self._beat_at)

    # Private

    def _shake_hands(self, messages: list[LinkMessage]) -> list[LinkMessage]:
        """Return the messages that come after the handshake."""
        for place, message in enumerate(messages):
            self._write(self._handshake.take(message))
            if self._handshake.peer is not None:
                self.end = self._make_end(self, self._outbox)
                return messages[place + 1 :]
        return []

    def _take(self, messages: list[LinkMessage]) -> None:
        assert self.end is not None
        for message in messages:
            if isinstance(message, Goodbye):
                self._why = message.reason
        self.end.take(messages)

    def _write_soon(self) -> None:
        if self._loop.time() >= self._pace.next_at:
            self._write_due = self._loop.call_soon(self._write_out)
        else:
            self._write_due = self._loop.call_at(self._pace.next_at, self._write_out)

    def _write_out(self) -> None:
        self._pace.wrote(self._loop.time())
        self._barrier.run(self._write, None)

    def _write(self, messages: Sequence[LinkMessage] | None) -> None:
        if messages is None:
            messages = self._outbox.take()
        if messages and self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._encoded(messages))

    def _encoded(self, messages: Sequence[LinkMessage]) -> bytes:
        try:
            return encode_messages(messages)
        except EngineError:
            return b"".join(map(self._encoded_alone, messages))

    def _encoded_alone(self, message: LinkMessage) -> bytes:
        """Nothing where it cannot be written: whoever waits for what it would lead to is told."""
        try:
            return encode_messages((message,))
        except EngineError as exc:
            assert self.end is not None, "what is said in a handshake is short and plain"
            self.end.unsent(message, exc.message)
            return b""

    def _crashed(self, exc: Exception) -> None:
        """A bug of ours: the link and all on it ends, and is made anew."""
        get_logger("hosts").error("link_crashed", exc_info=exc)
        if self._transport is not None:
            self._transport.abort()
