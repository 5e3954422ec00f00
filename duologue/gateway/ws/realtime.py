"""``WS /v1/realtime``: admit, upgrade, and join the connection to a session.

This module must not know what is said on the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web

from duologue.core.errors import CapacityError, UnknownSession
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access, Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.accept import choose_accept
from duologue.gateway.ws.channel import Timing
from duologue.gateway.ws.connection import Connection
from duologue.gateway.ws.form import ConnectionForm, connection_form
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.gateway.ws.open_connections import OpenConnections
from duologue.gateway.ws.queued_session import QueuedSession
from duologue.hosts.port import HostPort, Joined, LateOpening, Opening, Return
from duologue.protocol.errors import ErrorCode
from duologue.sessions.resumption.late_session import LateSession
from duologue.sessions.session import CLIENT_GONE
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
        timing: Timing,
        connections: OpenConnections | None = None,
        observe: Observe = no_calls,
    ) -> None:
        self._host = host
        self._observe = observe
        self._admission = admission
        self._access = access
        self._dialects = settings.dialects
        self._max_message_bytes = settings.max_message_bytes
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
            async with self._in_turn(session):
                await Connection(channel, session, form.dialect).run()
        return response

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until no connection is open, see ``OpenConnections``."""
        for session in list(self._late):
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
            return await self._open_or_wait(opening)
        if form.autostart:
            self._admission.check_call()
        else:
            self._admission.check_loaded()
            if not form.resumes:
                self._admission.check_turn()
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

    async def _open_or_wait(self, opening: Opening | LateOpening) -> Joined:
        """Open a session, or stand in the queue for a place.

        Raises:
            CapacityError: The queue is full, or there is another reason than a want of places.
        """

        async def open_now() -> Joined:
            self._admission.check_place()
            return await self._host.open(opening)

        queue = self._admission.queue
        if not len(queue):
            try:
                return await open_now()
            except CapacityError as exc:
                if exc.code != ErrorCode.SERVER_FULL or not queue.capacity:
                    raise
        session = QueuedSession(queue, open_now, self._queue_timeout_s)
        queue.join(session)
        return session

    @asynccontextmanager
    async def _in_turn(self, session: Joined) -> AsyncIterator[None]:
        """Let a session that waits for its place have it, while its connection is served."""
        if not isinstance(session, QueuedSession):
            yield
            return
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(session.wait(), name="call-queue")
            try:
                yield
            finally:
                turn.cancel()

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
