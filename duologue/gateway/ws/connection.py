"""The connection: a channel and a session, joined by a dialect.

Messages in become commands; deliveries become messages out, as fast as the transport takes them.
This module must not know aiohttp, nor what commands and events mean.
"""

from __future__ import annotations

import asyncio

from duologue.core.errors import ClientError
from duologue.gateway.ws.channel import Channel
from duologue.protocol.errors import ERROR_TABLE, ErrorCode, error_body
from duologue.protocol.json_codec import decode_command, encode_event
from duologue.sessions.port import SessionPort

PULL_BYTES = 16 * 1024
"""What is taken from the session at a time: more could not be called back by an interruption."""


class Connection:
    """One WebSocket on one session; the session's ``Attachment``.

    Concurrency:
        Belongs to the event loop. ``on_message`` and ``on_output`` never wait; only when the
        transport is full does the task of ``run`` take over the writing.
    """

    def __init__(self, channel: Channel, port: SessionPort, close_timeout_s: float) -> None:
        self._channel = channel
        self._port = port
        self._close_timeout_s = close_timeout_s
        self._full = asyncio.Event()
        self._patience = asyncio.timeout(None)
        self._waiting = False
        self._close_reason: str | None = None

    async def run(self) -> None:
        """Serve the connection until one of its ends is gone."""
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._write_when_full(), name="ws-writer")
            self._port.attach(self)
            try:
                await self._channel.run(self._on_message)
            finally:
                self._port.detach(self)
                writer.cancel()

    # Attachment

    def on_output(self) -> None:
        """Write what the session has, as far as the transport takes it."""
        if not self._full.is_set():
            self._write()

    def on_end(self, reason: str) -> None:
        """The session is over: write what is left, then close."""
        self._close_reason = reason
        if self._waiting:
            # The peer may not be reading at all; it gets a moment, then the connection is cut.
            loop = asyncio.get_running_loop()
            self._patience.reschedule(loop.time() + self._close_timeout_s)
        self._full.set()

    def _on_message(self, message: bytes) -> None:
        try:
            command = decode_command(message)
        except ClientError as exc:
            self._port.reject(error_body(exc))
        else:
            self._port.offer(command)

    def _write(self) -> None:
        channel = self._channel
        while channel.can_send():
            batch = self._port.pull(PULL_BYTES)
            for delivery in batch.deliveries:
                channel.send(encode_event(delivery.event, delivery.seq))
            if not batch.more:
                return
        self._full.set()

    async def _write_when_full(self) -> None:
        while True:
            await self._full.wait()
            await self._wait_writable()
            self._full.clear()
            self._write()
            if self._close_reason is not None and not self._full.is_set():
                break
        code, text = close_of(self._close_reason)
        await self._channel.close(code, text, self._close_timeout_s)

    async def _wait_writable(self) -> None:
        self._patience = asyncio.timeout(None)
        self._waiting = True
        try:
            async with self._patience:
                await self._channel.wait_writable()
        except TimeoutError:
            self._full.clear()
        finally:
            self._waiting = False


def close_of(reason: str) -> tuple[int, str]:
    """Return the close code and text for the reason that a session ended for."""
    try:
        row = ERROR_TABLE[ErrorCode(reason)]
    except ValueError:
        return 1000, reason
    return row.close_code, row.public_text
