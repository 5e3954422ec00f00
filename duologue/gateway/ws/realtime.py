"""``WS /v1/realtime``: admit, upgrade, and join the connection to a session.

This module must not know what is said on the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from duologue.core.errors import UnknownSession
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access, Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.picture_check import with_picture_check
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.accept import choose_accept
from duologue.gateway.ws.channel import ChannelTiming
from duologue.gateway.ws.connection import Connection
from duologue.gateway.ws.form import ConnectionForm, connection_form
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.hosts.port import HostPort, InTurn, LateOpening, Opening, Return
from duologue.hosts.queued_session import QueuedSession
from duologue.protocol.errors import ErrorCode
from duologue.sessions.port import Joined
from duologue.sessions.session import CLIENT_GONE
from duologue.sessions.stand_ins.late_session import LateSession
from duologue.sessions.via import Via

Observe = Callable[[str, Caller], Awaitable[Joined]]
"""Finds a call by its id, for one who may look on at it; raises ``UnknownSession``."""


async def no_calls(call_id: str, _caller: Caller) -> Joined:
    """Find none."""
    raise UnknownSession(f"there is no call {call_id[:80]!r}")


class RealtimeEndpoint:
    """Serves Realtime connections.

    Args:
        host: Where sessions are opened.
        connections: Where the open ones are counted.
        observe: Finds the calls that ``?call_id=`` names.
    """

    def __init__(
        self,
        host: HostPort,
        admission: Admission,
        access: Access,
        settings: GatewaySettings,
        timing: ChannelTiming,
        connections: OpenConnections | None = None,
        observe: Observe = no_calls,
    ) -> None:
        self._host = host
        self._observe = observe
        self._admission = admission
        self._access = access
        self._dialects = settings.dialects
        self._max_message_bytes = settings.max_message_bytes
        self._max_picture_pixels = settings.http.max_picture_pixels
        self._timing = timing
        self._accept = choose_accept(settings.private_reader)
        self._connections = connections or OpenConnections()
        self._first_message_timeout_s = settings.first_message_timeout_s
        self._queue_timeout_s = settings.queue_timeout_s
        self._late: set[LateSession | QueuedSession] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection from request to close.

        Raises:
            ClientError: It may not connect, or did not try to.
            CapacityError: No call can begin now.
        """
        offered = offered_protocols(request.headers)
        caller = await self._access.let_in_call(request.headers, offered, request.query_string)
        check_upgrade(request.headers)
        form = connection_form(
            request.path, request.query_string, request.headers, offered, self._dialects
        )
        # Before the upgrade, since only there can a refusal say why.
        session = await self._open(form, caller)
        with self._connections.counted(), self._waiting(session):
            try:
                response, channel = await self._accept(
                    request, form.protocol, self._max_message_bytes, self._timing
                )
            except BaseException as exc:
                session.close(CLIENT_GONE)
                if isinstance(exc, ConnectionError):
                    return web.Response()  # nobody is there to read it
                raise
            dialect = with_picture_check(form.dialect, self._max_picture_pixels)
            await Connection(channel, session, dialect).run()
        return response

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until no connection is open, see ``OpenConnections``."""
        for session in list(self._late):
            if not session.id:  # nobody else would end it
                session.close(ErrorCode.SHUTTING_DOWN)
        await self._connections.wait_closed(timeout_s)

    async def _open(self, form: ConnectionForm, caller: Caller) -> Joined:
        if form.call_id is not None:
            return await self._observe(form.call_id, caller)
        if form.session_id is not None and form.resume_token is not None and form.autostart:
            self._admission.check_loaded()
            return await self._host.open(
                Return(
                    session_id=form.session_id,
                    resume_token=form.resume_token,
                    owner=caller.owner,
                )
            )
        opening = self._opening(form, caller)
        if form.queues:
            self._admission.check_loaded()
            in_turn = InTurn(opening=opening, timeout_s=self._queue_timeout_s)
            return await self._host.open(in_turn)
        if form.autostart:
            self._admission.check_call()
        else:
            self._admission.check_loaded()
        return await self._host.open(opening)

    def _opening(self, form: ConnectionForm, caller: Caller) -> Opening | LateOpening:
        bound = caller.session or BoundSession()
        opening = Opening(
            model=bound.model or form.model,
            kind=form.kind if form.autostart else "realtime",
            patch=bound.patch,
            owner=caller.owner,
            via=Via("websocket", form.dialect.family),
            resumable=form.resumable or not form.autostart,
        )
        if form.autostart:
            return opening
        return LateOpening(
            opening=opening, timeout_s=self._first_message_timeout_s, resumes=form.resumes
        )

    @contextmanager
    def _waiting(self, session: Joined) -> Iterator[None]:
        """Know of a session that may be yet to come, so that a shutdown need not wait for it."""
        if not isinstance(session, LateSession | QueuedSession):
            yield
            return
        self._late.add(session)
        try:
            yield
        finally:
            self._late.discard(session)
