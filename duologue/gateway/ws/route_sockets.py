"""The WebSockets of one route: how many are open, and how they end.

For routes that hold no session: speech and videos while they are made, robots.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import WSCloseCode, web

HEARTBEAT_S = 20.0


class RouteSockets:
    """Those of one route."""

    def __init__(self) -> None:
        self._open: set[web.WebSocketResponse] = set()

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
        self._open.add(socket)
        try:
            await socket.prepare(request)
            with suppress(ConnectionError):
                yield socket
        finally:
            self._open.discard(socket)
            if not socket.closed:
                await socket.close()

    async def close_all(self) -> None:
        """Say goodbye to everybody: the server goes down."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server is shutting down")
