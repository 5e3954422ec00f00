"""``WS /v1/realtime``: admit, upgrade, and join the connection to a session.

This module must not know what is said on the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from aiohttp import web

from duologue.core.errors import CapacityError, UnknownSession
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access, Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.channel import Timing
from duologue.gateway.ws.connection import Connection
from duologue.gateway.ws.form import ConnectionForm, connection_form
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.gateway.ws.late_session import LateSession, Place
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.reader import choose_accept
from duologue.gateway.ws.returning import ReturningSession, check_comes_back
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.duplex.session_patch import as_duplex
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.manager import SessionManager
from duologue.sessions.port import SessionPort
from duologue.sessions.session import CLIENT_GONE
from duologue.sessions.ticket import Ticket
from duologue.sessions.via import Via


class Joined(SessionPort, Protocol):
    """What a connection is joined to: a session of its own, or somebody's call to look on at."""

    def close(self, reason: str) -> None:
        """Nobody will attach, or nobody is to be attached any more."""
        ...


Observe = Callable[[str, Caller], Joined]
"""Finds a call by its id, for one who may look on at it; raises ``UnknownSession``."""


def no_calls(call_id: str, _caller: Caller) -> Joined:
    """Find none."""
    raise UnknownSession(f"there is no call {call_id[:80]!r}")


class RealtimeEndpoint:
    """Serves Realtime connections.

    Args:
        sessions: Where sessions are opened.
        connections: Where the open ones are counted.
        observe: Finds the calls that ``?call_id=`` names.
    """

    def __init__(
        self,
        sessions: SessionManager,
        admission: Admission,
        access: Access,
        settings: GatewaySettings,
        timing: Timing,
        connections: OpenConnections | None = None,
        observe: Observe = no_calls,
    ) -> None:
        self._sessions = sessions
        self._observe = observe
        self._admission = admission
        self._access = access
        self._dialects = settings.dialects
        self._max_message_bytes = settings.max_message_bytes
        self._timing = timing
        self._accept = choose_accept(settings.private_reader)
        self._connections = connections or OpenConnections()
        self._first_message_timeout_s = settings.first_message_timeout_s
        self._late: set[LateSession] = set()

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
        # Before the upgrade, since only there can a refusal say why.
        session = self._open(form, caller)
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
            await Connection(channel, session, form.dialect).run()
        return response

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until no connection is open, see ``OpenConnections``."""
        for session in list(self._late):
            session.close(ErrorCode.SHUTTING_DOWN)
        await self._connections.wait_closed(timeout_s)

    def _open(self, form: ConnectionForm, caller: Caller) -> Joined:
        if form.call_id is not None:
            return self._observe(form.call_id, caller)
        if form.session_id is not None and form.resume_token is not None and form.autostart:
            self._admission.check_loaded()
            ticket = self._sessions.claim(form.session_id, form.resume_token, caller.owner)
            check_comes_back(ticket)
            return ReturningSession(ticket)
        if form.autostart:
            self._admission.check_call()
        else:
            self._admission.check_loaded()
        bound = caller.session or BoundSession()
        model = bound.model or form.model
        sessions = self._sessions
        via = Via("websocket", form.dialect.name.partition(".")[0])
        if form.autostart:
            return sessions.open(
                model,
                form.kind,
                bound.patch,
                caller.owner,
                via=via,
                resumable=form.resumable,
            )

        def open_described(patch: SessionPatch) -> SessionPort:
            # What a secret says comes first, and the client may change it like anybody.
            of_secret = bound.patch != SessionPatch()
            session = sessions.open(
                model,
                "realtime",
                as_duplex(bound.patch) if of_secret else patch,
                caller.owner,
                via=via,
                resumable=True,
            )
            if of_secret:
                session.offer(UpdateSession(session=patch))
            return session

        def resume(command: ResumeSession) -> Ticket:
            return sessions.claim(
                command.session_id,
                command.resume_token,
                caller.owner,
                command.last_received_server_event_seq,
            )

        kept = not form.resumes
        if kept:
            try:
                sessions.keep_place()
            except CapacityError:
                if not sessions.detached:
                    raise
                # Somebody may come back, to a place that is his already.
                kept = False
        place = Place(
            open_described, resume, sessions.keep_place, sessions.give_up_place, kept=kept
        )
        return LateSession(
            place, self._timing.clock, self._timing.wheel, self._first_message_timeout_s
        )

    @contextmanager
    def _waiting(self, session: Joined) -> Iterator[None]:
        """Know of a session that may be yet to come, so that a shutdown need not wait for it."""
        if not isinstance(session, LateSession):
            yield
            return
        self._late.add(session)
        try:
            yield
        finally:
            self._late.discard(session)
