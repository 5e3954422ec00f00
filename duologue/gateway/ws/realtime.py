"""``WS /v1/realtime``: admit, upgrade, and join the connection to a session.

This module must not know what is said on the connection.
"""

from __future__ import annotations

from aiohttp import web

from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.channel import Timing
from duologue.gateway.ws.connection import Connection
from duologue.gateway.ws.form import connection_form
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.reader import choose_accept
from duologue.sessions.manager import SessionManager
from duologue.sessions.session import CLIENT_GONE


class RealtimeEndpoint:
    """Serves Realtime connections.

    Args:
        sessions: Where sessions are opened.
        connections: Where the open ones are counted.
    """

    def __init__(
        self,
        sessions: SessionManager,
        admission: Admission,
        access: Access,
        settings: GatewaySettings,
        timing: Timing,
        connections: OpenConnections | None = None,
    ) -> None:
        self._sessions = sessions
        self._admission = admission
        self._access = access
        self._dialects = settings.dialects
        self._max_message_bytes = settings.max_message_bytes
        self._timing = timing
        self._accept = choose_accept(settings.private_reader)
        self._connections = connections or OpenConnections()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection from request to close.

        Raises:
            ClientError: It may not connect, or did not try to.
            CapacityError: No call can begin now.
        """
        offered = offered_protocols(request.headers)
        caller = self._access.check_call(request.headers, offered, request.query_string)
        check_upgrade(request.headers)
        form = connection_form(
            request.path, request.query_string, request.headers, offered, self._dialects
        )
        self._admission.check_call()
        # Before the upgrade, since only there can a refusal say why.
        bound = caller.session or BoundSession()
        session = self._sessions.open(
            bound.model or form.model, form.kind, bound.patch, caller.owner
        )
        with self._connections.counted():
            try:
                response, channel = await self._accept(
                    request, form.protocol, self._max_message_bytes, self._timing
                )
            except BaseException as exc:
                session.close(CLIENT_GONE)
                if isinstance(exc, ConnectionError):
                    return web.Response()  # nobody is there to read it
                raise
            await Connection(channel, session, form.dialect).run()
        return response

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until no connection is open, see ``OpenConnections``."""
        await self._connections.wait_closed(timeout_s)
