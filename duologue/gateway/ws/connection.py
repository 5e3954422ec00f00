"""The connection: a channel and a session, joined by a dialect.

Messages in become commands; deliveries become messages out, as fast as the transport takes them.
This module must not know aiohttp, nor what commands and events mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from duologue.core.errors import ClientError
from duologue.core.tasks import CrashBarrier
from duologue.gateway.beside_loop import LARGE_BYTES, read_beside_loop
from duologue.gateway.ws.channel import Channel
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Dialect
from duologue.protocol.errors import ERROR_TABLE, ErrorCode, error_body
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.sessions.port import Delivery, SessionPort
from duologue.sessions.stand_ins.last_words import LastWords
from duologue.telemetry import get_logger

PULL_BYTES = 8 * 1024
"""What is taken from the session at a time: more could not be called back by an interruption."""

PULLS_AT_ONCE = 8
"""How often, before everybody else has a turn: a peer that reads as fast as we write must not hold
the loop."""


class Connection:
    """One WebSocket on one session; the session's ``Attachment``.

    Concurrency:
        Belongs to the event loop. What comes in and what goes out is handled where it arises; only
        when the transport is full, and at the end, does a task of ``run`` do the writing.
    """

    __slots__ = (
        "__weakref__",
        "_barrier",
        "_channel",
        "_close_reason",
        "_decode",
        "_encode",
        "_group",
        "_line",
        "_port",
        "_pressed",
        "_reading",
        "_send",
        "_task_writes",
        "_writer_due",
    )

    def __init__(
        self, channel: Channel, port: SessionPort, dialect: Dialect = REALTIME_JSON
    ) -> None:
        self._channel = channel
        self._port = port
        self._decode = dialect.decode_command
        self._encode = dialect.encode_event
        self._send = channel.send_binary if dialect.binary else channel.send
        self._task_writes = False
        """The transport is full, or the end is near: the task does the writing, nobody else."""

        self._writer_due = asyncio.Event()
        """Set together with it, to wake the task."""

        self._line: deque[bytes] | None = None
        """While a large message is being read: those that came behind it."""

        self._reading: asyncio.Task[None] | None = None
        self._pressed = False
        self._group: asyncio.TaskGroup | None = None
        self._close_reason: str | None = None
        self._barrier = CrashBarrier(self._crashed)

    async def run(self) -> None:
        """Serve the connection until one of its ends is gone."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                writer = group.create_task(self._write_the_rest(), name="ws-writer")
                self._port.attach(self)
                try:
                    await self._channel.run(self._on_message)
                    if self._reading is not None:
                        await asyncio.wait((self._reading,))
                finally:
                    self._port.detach(self)
                    writer.cancel()
            await self._channel.finish()
        finally:
            self._group = None
            self._channel.release()
            del self._barrier  # it refers to us, and a circle would outlive the connection

    # Attachment

    def on_output(self) -> None:
        """Write what the session has, as far as the transport takes it."""
        if not self._task_writes:
            self._barrier.run(self._write, self._port)

    def on_end(self, reason: str) -> None:
        """The session is over: write what is left, then close; the peer has a moment to let us."""
        self._close_reason = reason
        self._channel.expire()
        self._hand_to_task()

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """Have nothing more to do with the session: write the last words, then close."""
        self._port = LastWords(last_words)
        self.on_end(reason)

    def on_pressure(self, on: bool) -> None:
        """Read on later."""
        self._pressed = on
        self._channel.hold(on or self._line is not None)

    def _on_message(self, message: bytes) -> None:
        if self._line is not None or len(message) > LARGE_BYTES:
            self._stand_in_line(message)
            return
        command = None
        try:
            command = self._decode(message)
            self._port.offer(command)
        except ClientError as exc:
            self._refuse(exc, command)

    def _refuse(self, exc: ClientError, command: Command | None) -> None:
        self._port.reject(error_body(exc, None if command is None else command.event_id))

    def _stand_in_line(self, message: bytes) -> None:
        """Have a large message read beside the loop; what comes behind it waits."""
        if self._line is not None:
            self._line.append(message)
        elif self._group is not None:
            self._line = deque((message,))
            self._channel.hold(True)
            self._reading = self._group.create_task(self._work_off(self._line), name="ws-large")

    async def _work_off(self, line: deque[bytes]) -> None:
        with self._barrier:
            while line:
                message, command = line.popleft(), None
                try:
                    command = await read_beside_loop(self._decode, message)
                    self._port.offer(command)
                except ClientError as exc:
                    self._refuse(exc, command)
        self._line = None
        self._channel.hold(self._pressed)

    def _write(self, port: SessionPort) -> None:
        channel, encode, send = self._channel, self._encode, self._send
        for _ in range(PULLS_AT_ONCE):
            if not channel.can_send():
                break
            batch = port.pull(PULL_BYTES)
            for delivery in batch.deliveries:
                message = encode(delivery.event, delivery.seq)
                if message is not None:
                    send(message)
            if not batch.more:
                return
        self._hand_to_task()

    def _hand_to_task(self) -> None:
        self._task_writes = True
        self._writer_due.set()

    async def _write_the_rest(self) -> None:
        with self._barrier:
            await self._writer_due.wait()
            while await self._channel.writable():
                await asyncio.sleep(0)  # the transport may take all at once: others have a turn
                self._writer_due.clear()
                self._task_writes = False
                self._write(self._port)
                if self._task_writes:
                    continue
                if self._close_reason is not None:
                    self._channel.close(*close_of(self._close_reason))
                    return
                await self._writer_due.wait()

    def _crashed(self, exc: Exception) -> None:
        """A bug of ours in writing: the session ends, others never notice."""
        get_logger("gateway").error("connection_crashed", exc_info=exc)
        self._channel.close(*close_of(ErrorCode.SERVER_ERROR))


def close_of(reason: str) -> tuple[int, str]:
    """Return the close code and text for the reason that a session ended for."""
    try:
        row = ERROR_TABLE[ErrorCode(reason)]
    except ValueError:
        return 1000, reason
    return row.close_code, row.public_text
