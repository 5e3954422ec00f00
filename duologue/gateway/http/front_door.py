"""What every plain HTTP request passes: its key, room for it, and is its client still there.

WebSockets that hold no session pass here too: a slot is theirs from before the upgrade, where a
refusal can still say why, until they are closed.

A handler behind the door is cancelled when its client has gone or its time is over; whatever it
holds is let go in its ``finally`` blocks. Faults of ours become an answer in the usual shape. This
module must not know what a request is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from aiohttp import web

from duologue.core.errors import DuologueError, StageTimeout
from duologue.core.tasks import CrashBarrier
from duologue.gateway.admission import Admission
from duologue.gateway.auth import Access
from duologue.gateway.errors import Handler, error_response
from duologue.gateway.http.prefer import wished_wait_s
from duologue.gateway.http.routes import WAIT, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.ws.handshake import check_upgrade, offered_protocols
from duologue.hosts.faults import host_lost
from duologue.hosts.port import Slot
from duologue.hosts.request_slots import SlotsPort
from duologue.sessions.owners import ANYBODY
from duologue.telemetry import get_logger

LOOK_S = 0.25
"""How often is looked whether the client is still there."""


class FrontDoor:
    """One for all routes.

    Args:
        slots: For requests that are work.
    """

    def __init__(
        self, access: Access, admission: Admission, settings: HttpSettings, slots: SlotsPort
    ) -> None:
        self._access = access
        self._admission = admission
        self._settings = settings
        self._slots = slots
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = get_logger("gateway")

    def before(self, route: Route) -> Handler:
        """Return the handler that stands before a route's own."""

        async def serve(request: web.Request) -> web.StreamResponse:
            crashes: list[Exception] = []
            owner = ANYBODY
            with CrashBarrier(crashes.append):
                if route.needs_key:
                    headers = request.headers
                    caller = await self._access.let_in(
                        headers, offered_protocols(headers), request.query_string
                    )
                    owner = caller.owner
                if not route.is_work:
                    return await route.handle(request)
                if route.is_socket:
                    check_upgrade(request.headers)
                self._admission.check_request()
                wait_s = self._wished_wait_s(request, route)
                slot = Slot(wait_s=wait_s, work=route.work, owner=owner)
                if route.is_socket:
                    return await self._with_slot(request, route, slot)
                async with self._slots.taken(slot):
                    with self._counted():
                        return await self._while_wanted(request, route)
            return self._failed(request, route, crashes[0])

        return serve

    async def wait_idle(self, timeout_s: float) -> None:
        """Wait until nothing is worked on, for ``timeout_s`` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    def _wished_wait_s(self, request: web.Request, route: Route) -> float:
        wished = request.headers.get("Prefer")
        if route.is_socket and WAIT in request.query:
            wished = f"wait={request.query[WAIT]}"  # browsers give an upgrade no headers
        return wished_wait_s(wished, self._settings.queue_timeout_s)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._working += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._idle.set()

    async def _with_slot(
        self, request: web.Request, route: Route, slot: Slot
    ) -> web.StreamResponse:
        """Hold a WebSocket for as long as it holds a slot: without one nobody would count it."""
        limit = asyncio.timeout(None)
        lost = partial(_end, limit, asyncio.get_running_loop())
        try:
            async with limit, self._slots.taken(slot, lost):
                return await route.handle(request)
        except TimeoutError:
            if limit.expired():
                raise host_lost() from None
            raise

    async def _while_wanted(self, request: web.Request, route: Route) -> web.StreamResponse:
        """Run a handler until it is done, its client has gone, or its time is over."""
        limit_s = route.timeout_s or self._settings.request_timeout_s
        watch: _Watch | None = None
        try:
            async with asyncio.timeout(limit_s) as limit:
                watch = _Watch(request, limit)
                try:
                    return await _sent(await route.handle(request), request)
                finally:
                    watch.stop()
        except TimeoutError:
            if watch is not None and watch.client_has_gone:
                return web.Response()  # nobody is there to read it
            raise StageTimeout(f"no answer within {limit_s:g} s") from None

    def _failed(self, request: web.Request, route: Route, exc: Exception) -> web.StreamResponse:
        if isinstance(exc, web.HTTPException):
            raise exc
        if isinstance(exc, ConnectionError):
            return web.Response()  # nobody is there to read it
        if not isinstance(exc, DuologueError):
            self._log.error("http_request_crashed", operation=route.operation, exc_info=exc)
            exc = DuologueError("a handler crashed")
        if _has_begun(request):
            # What was sent cannot be taken back; without its end it shows that it is not all.
            self._log.warning("http_answer_broke_off", operation=route.operation, code=exc.code)
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return error_response(exc)


class _Watch:
    """Looks now and then whether a client is still there; lets the time be over when it is not."""

    def __init__(self, request: web.Request, limit: asyncio.Timeout) -> None:
        self.client_has_gone = False
        self._request = request
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        if self._limit.expired():
            return
        transport = self._request.transport
        if transport is None or transport.is_closing():
            self.client_has_gone = True
            self._limit.reschedule(self._loop.time())
        else:
            self._timer = self._loop.call_later(LOOK_S, self._look)


def _end(limit: asyncio.Timeout, loop: asyncio.AbstractEventLoop) -> None:
    if not limit.expired():
        limit.reschedule(loop.time())


async def _sent(response: web.StreamResponse, request: web.Request) -> web.StreamResponse:
    """Send an answer here: until its client has taken it, it is memory, and holds its place."""
    await response.prepare(request)
    await response.write_eof()
    return response


def _has_begun(request: web.Request) -> bool:
    return request.writer.output_size > 0
