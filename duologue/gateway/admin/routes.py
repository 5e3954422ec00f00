"""``GET /debug/sessions``, and a page that shows it: what goes on, without a word of what is said.

Both exist only where ``gateway.admin_key`` is set. The page is the same for everybody and holds
nothing; what it shows, it asks for with the key that somebody types. This module must not change
anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from aiohttp import web

from duologue.gateway.admin.key import AdminKey
from duologue.gateway.admission import Admission
from duologue.gateway.errors import json_answer
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.hosts.port import HostPort
from duologue.sessions.watching.look import SessionLook

FOLDER = Path(__file__).parent
_FILES = {"": "dashboard.html", "/dashboard.js": "dashboard.js", "/dashboard.css": "dashboard.css"}
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class OpenSessions(msgspec.Struct, frozen=True):
    """What goes on.

    Args:
        workers_ready: Of ``workers``, those whose model is loaded.
    """

    sessions: list[SessionLook]
    workers_ready: int
    workers: int


class AdminRoutes:
    """The routes of who runs the server."""

    def __init__(
        self,
        host: HostPort,
        admission: Admission,
        key: AdminKey,
    ) -> None:
        self._host = host
        self._admission = admission
        self._key = key

    def routes(self) -> Sequence[Route]:
        """For the application; none without a key."""
        if not self._key:
            return ()
        pages = [
            Route(
                method="GET",
                path=f"/debug{path}",
                operation=f"getDashboard{name.title().replace('.', '')}",
                summary="The dashboard, which asks for the admin key.",
                handle=_sender(FOLDER / name),
                is_work=False,
                needs_key=False,
            )
            for path, name in _FILES.items()
        ]
        return (
            *pages,
            Route(
                method="GET",
                path="/debug/sessions",
                operation="getOpenSessions",
                summary="Show the open sessions, without content.",
                handle=self.sessions,
                answers=(Content(JSON, OpenSessions),),
                is_work=False,
                needs_key=False,
            ),
        )

    async def sessions(self, request: web.Request) -> web.Response:
        """Show the open sessions.

        Raises:
            AuthError: The admin key is missing or wrong. An API key opens nothing here.
        """
        self._key.check(request)
        workers = self._admission.workers
        page = OpenSessions(await self._host.look(), workers.ready, workers.total)
        return json_answer(page, headers={"Cache-Control": "no-store"})


def _sender(path: Path) -> Callable[[web.Request], Awaitable[web.FileResponse]]:
    async def send(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(path, headers=_HEADERS)

    return send
