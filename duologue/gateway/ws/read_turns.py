"""Connections that have sent much at once take turns, so that no flood holds the loop.

What lies in the kernel is read in pieces of up to 256 KiB, and that can be thousands of messages.
A long piece is parsed in slices, one slice of one connection per turn of the loop, and its
connection is read no further until it is done: a client that sends faster than its messages can
be dealt with waits, and nobody else does. This module must not know what is in a message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from duologue.gateway.ws.heartbeat import Heartbeat
from duologue.gateway.ws.reading_gate import ReadingGate

SLICE_BYTES = 16 * 1024
"""Some three hundred of the smallest messages there are, which take about 3 ms; more than most
calls send in a quarter of a second."""


class Parser(Protocol):
    """Takes bytes from a connection; aiohttp's parser of WebSocket frames is one."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take bytes; the first value says that no more can be read."""
        ...

    def feed_eof(self) -> None:
        """The connection is lost."""
        ...


class ReadTurns:
    """Who has something left to parse, in the order in which they are served. One for all.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[PacedParser] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, parser: PacedParser) -> None:
        """Let a connection have its turn."""
        self._waiting.append(parser)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        parser = self._waiting[0]
        try:
            has_more = parser.take_slice()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)
        if has_more:
            self.add(parser)


class PacedParser:
    """Stands before a connection's parser.

    Args:
        gate: Shut while some of what was read is yet to be parsed.
        heartbeat: Told of what comes, and of each slice: a connection whose turn is yet to come is
            not a silent one.
        now: Tells the time.
        failed: Told that no more can be read.
    """

    __slots__ = (
        "_failed",
        "_gate",
        "_heartbeat",
        "_now",
        "_offset",
        "_parser",
        "_rest",
        "_turns",
    )

    def __init__(
        self,
        parser: Parser,
        gate: ReadingGate,
        turns: ReadTurns,
        heartbeat: Heartbeat,
        now: Callable[[], float],
        failed: Callable[[], None],
    ) -> None:
        self._parser = parser
        self._gate = gate
        self._turns = turns
        self._heartbeat = heartbeat
        self._now = now
        self._failed = failed
        self._rest = b""
        self._offset = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes: a few at once, many in turns."""
        clock = self._now
        self._heartbeat.heard_at = clock()
        if self._rest:
            self._rest += data
        elif len(data) <= SLICE_BYTES:
            if self._parser.feed_data(data)[0]:
                self._failed()
        else:
            self._rest = data
            self._gate.hold("turn")
            self._turns.add(self)

    def feed_eof(self) -> None:
        """The connection is lost, and what is left with it."""
        self._rest = b""
        self._parser.feed_eof()

    def take_slice(self) -> bool:
        """Parse some of what is left; returns whether there is more."""
        if not self._rest:
            return False
        piece = self._rest[self._offset : self._offset + SLICE_BYTES]
        self._offset += len(piece)
        self._heartbeat.heard_at = self._now()
        ended, _ = self._parser.feed_data(piece)
        if not ended and self._offset < len(self._rest):
            return True
        self._rest = b""
        self._offset = 0
        if ended:
            self._failed()
        # A peer that cannot be understood is read too, until it lets go.
        self._gate.release("turn")
        return False
