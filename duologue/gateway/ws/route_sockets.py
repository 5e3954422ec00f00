"""The WebSockets of one route: how many are open, and how they end.

For routes that hold no session: speech and videos while they are made, robots.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import WSCloseCode, web

HEARTBEAT_S = 20.0
GOODBYE_S = 10.0
"""A client that does not take our goodbye, and answer it, within this time is let go."""


class RouteSockets:
    """Those of one route.

    Args:
        goodbye_s: How long a client has to take our goodbye and to answer it.
    """

    def __init__(self, goodbye_s: float = GOODBYE_S) -> None:
        self._goodbye_s = goodbye_s
        self._open: dict[web.WebSocketResponse, web.Request] = {}
        self._nobody = asyncio.Event()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    @asynccontextmanager
    async def hold(
        self, request: web.Request, *, max_message_bytes: int, protocols: tuple[str, ...] = ()
    ) -> AsyncIterator[web.WebSocketResponse]:
        """Upgrade a request, and close its socket at the end. A broken line ends it quietly."""
        socket = web.WebSocketResponse(
            protocols=protocols,
            heartbeat=HEARTBEAT_S,
            max_msg_size=max_message_bytes,
            compress=False,
        )
        self._open[socket] = request
        self._nobody.clear()
        code = WSCloseCode.OK
        try:
            await socket.prepare(request)
            with suppress(ConnectionError):
                yield socket
        except asyncio.CancelledError:
            code = WSCloseCode.SERVICE_RESTART  # it is we who cannot go on
            raise
        finally:
            del self._open[socket]
            if not self._open:
                self._nobody.set()
            if socket.prepared and not socket.closed:
                await self._close(socket, request, code)

    async def close_all(self, limit_s: float) -> None:
        """Say goodbye to everybody: the server goes down.

        Whoever has not left after ``limit_s``, because it takes nothing, is let go.
        """
        if not self._open:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
                for socket in self._open:
                    if socket.prepared:
                        goodbye = b"the server is shutting down"
                        closing = socket.close(code=WSCloseCode.GOING_AWAY, message=goodbye)
                        group.create_task(closing, name="goodbye")
                group.create_task(self._nobody.wait(), name="all-left")
        for request in self._open.values():
            _let_go(request)

    async def _close(
        self, socket: web.WebSocketResponse, request: web.Request, code: WSCloseCode
    ) -> None:
        try:
            async with asyncio.timeout(self._goodbye_s):
                await socket.close(code=code)
        except TimeoutError:
            _let_go(request)


def _let_go(request: web.Request) -> None:
    """Drop a connection with all that it has not taken; to close it would wait for that."""
    if request.transport is not None:
        request.transport.abort()
