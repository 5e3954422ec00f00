"""Answers that are sent while they are made: bytes, or events of ``text/event-stream``.

Nothing is sent before the first piece, so that what fails before it is an ordinary error with its
status. This module must not know what is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from aiohttp import web

from duologue.core.errors import DuologueError
from duologue.gateway.errors import ErrorPage
from duologue.gateway.http.routes import EVENTS
from duologue.protocol.errors import error_body

DONE = b"[DONE]"


class ByteStream:
    """A streamed answer of any kind.

    ``write`` waits while the client does not take what was sent.

    Args:
        length: How long all of it is, where that is known.
    """

    def __init__(self, request: web.Request, content_type: str, length: int | None = None) -> None:
        self._request = request
        self.response = web.StreamResponse(headers={"Content-Type": content_type})
        self.response.content_length = length

    @property
    def has_begun(self) -> bool:
        """Something was sent."""
        return self.response.prepared

    async def write(self, data: bytes) -> None:
        """Send more.

        Raises:
            ConnectionError: The client has gone.
        """
        if not self.response.prepared:
            await self.response.prepare(self._request)
        await self.response.write(data)

    async def end(self) -> web.StreamResponse:
        """Say that this was all; returns what the handler should."""
        if not self.response.prepared:
            await self.response.prepare(self._request)
        await self.response.write_eof()
        return self.response


class EventStream:
    """Server-sent events."""

    def __init__(self, request: web.Request) -> None:
        self._stream = ByteStream(request, EVENTS)
        self._stream.response.headers["Cache-Control"] = "no-cache"
        self._stream.response.headers["X-Accel-Buffering"] = "no"
        self._sent = 0

    @property
    def response(self) -> web.StreamResponse:
        """What the handler should return in the end."""
        return self._stream.response

    @property
    def has_begun(self) -> bool:
        """Something was sent."""
        return self._stream.has_begun

    async def send(self, event: msgspec.Struct, name: str | None = None) -> None:
        """Send an event; waits while the client does not take what was sent.

        Raises:
            ConnectionError: The client has gone.
        """
        head = b"" if name is None else f"event: {name}\n".encode()
        await self._write(head + b"data: " + msgspec.json.encode(event) + b"\n\n")

    async def end(self, closing: bytes | None = None) -> None:
        """Say that this was all.

        Args:
            closing: Data of one more event.
        """
        if closing is not None:
            await self._write(b"data: " + closing + b"\n\n")
        await self._stream.end()

    async def keep_alive(self, silence_s: float) -> None:
        """Send a comment after each silence, until cancelled."""
        while True:
            sent = self._sent
            await asyncio.sleep(silence_s)
            if self._sent == sent:
                await self._write(b": keep-alive\n\n")

    async def _write(self, data: bytes) -> None:
        self._sent += 1
        await self._stream.write(data)


@asynccontextmanager
async def event_stream(
    request: web.Request, keep_alive_s: float, closing: bytes | None = None
) -> AsyncIterator[EventStream]:
    """Open an event stream, with comments in silences, and end it.

    An error of ours in the ``async with`` is the last event of a stream that has begun.

    Args:
        closing: Data of the very last event, also after an error.

    Raises:
        DuologueError: From the ``async with``, where nothing was sent yet.
        ConnectionError: The client has gone.
    """
    stream = EventStream(request)
    failure: DuologueError | ConnectionError | None = None
    async with asyncio.TaskGroup() as group:
        keeper = group.create_task(_kept_alive(stream, keep_alive_s), name="keep-alive")
        try:
            yield stream
        except (DuologueError, ConnectionError) as exc:
            failure = exc  # the group would wrap it
        keeper.cancel()
    if isinstance(failure, DuologueError) and stream.has_begun:
        await stream.send(ErrorPage(error_body(failure)))
    elif failure is not None:
        raise failure
    await stream.end(closing)


async def _kept_alive(stream: EventStream, silence_s: float) -> None:
    # Whoever writes next finds out that the client has gone.
    with suppress(ConnectionError):
        await stream.keep_alive(silence_s)
