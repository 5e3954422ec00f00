"""``WS /v1/realtime``: admit, upgrade, and join the connection to a session.

This module must not know what is said on the connection.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from aiohttp import web

from duologue.core.errors import CapacityError, ClientError
from duologue.gateway.auth import (
    REALTIME_PROTOCOL,
    check_key,
    check_origin,
    presented_key,
)
from duologue.gateway.errors import error_response
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.channel import callback_channel_works, make_channel, make_response
from duologue.gateway.ws.connection import Connection
from duologue.sessions.manager import SessionManager
from duologue.telemetry import get_logger


class RealtimeEndpoint:
    """Serves Realtime connections.

    Args:
        sessions: Where sessions are opened.
    """

    def __init__(self, sessions: SessionManager, settings: GatewaySettings) -> None:
        self._sessions = sessions
        self._settings = settings
        self._private = settings.private_reader and callback_channel_works()
        self._log = get_logger("gateway")
        if settings.private_reader and not self._private:
            self._log.warning("callback_reader_unavailable", consequence="more CPU per message")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection from request to close."""
        settings = self._settings
        offered = _subprotocols(request)
        try:
            check_origin(request.headers.get("Origin"), request.host, settings.allowed_origins)
            check_key(presented_key(request.headers, offered), settings.api_keys)
            if not _is_upgrade(request):
                raise ClientError("this address speaks WebSocket: connect with ws:// or wss://")
            self._sessions.check_room()
        except (ClientError, CapacityError) as exc:
            return error_response(exc)
        response = make_response(
            self._private,
            heartbeat_s=settings.heartbeat_s,
            max_message_bytes=settings.max_message_bytes,
            protocols=(REALTIME_PROTOCOL,) if REALTIME_PROTOCOL in offered else (),
        )
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response
        session = self._sessions.open(_model(request))
        connection = Connection(
            make_channel(response, transport), session, settings.close_timeout_s
        )
        await connection.run()
        return response


def _subprotocols(request: web.Request) -> list[str]:
    offered = request.headers.getall("Sec-WebSocket-Protocol", [])
    return [name.strip() for line in offered for name in line.split(",")]


def _is_upgrade(request: web.Request) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _model(request: web.Request) -> str | None:
    # One stock client appends "?model=" to a URL that may already hold a query.
    query = parse_qs(request.query_string.replace("?", "&"))
    return query.get("model", [None])[0]
