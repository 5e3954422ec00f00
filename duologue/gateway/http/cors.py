"""Cross-origin requests: pages of allowed origins may use every route and read every answer.

This module must not know the routes.
"""

from __future__ import annotations

from aiohttp import web

from duologue.core.errors import AuthError
from duologue.gateway.auth import Access
from duologue.gateway.errors import Handler
from duologue.protocol.errors import ErrorCode

EXPOSED_HEADERS = "Location, Retry-After, X-Request-Id"
"""Answers' headers that a page may read."""

_METHODS = "GET, POST, DELETE, OPTIONS"
_REMEMBER_S = "600"


class CrossOrigin:
    """Answers preflights, and marks all other answers.

    Args:
        access: Says which origins are allowed.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    def install(self, app: web.Application) -> None:
        """Take part in every answer of an application, streamed ones too."""
        app.on_response_prepare.append(self._mark)
        app.middlewares.append(self._answer_preflights)

    @web.middleware
    async def _answer_preflights(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Say what a page may send. Any header, since SDKs send a dozen of their own."""
        if request.method != "OPTIONS":
            return await handler(request)
        origin = request.headers.get("Origin", "")
        if not self._access.allows_page(origin, request.host):
            raise AuthError(
                f"pages from {origin[:80]!r} may not ask; see gateway.allowed_origins",
                code=ErrorCode.ORIGIN_NOT_ALLOWED,
            )
        allowed = {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": request.headers.get(
                "Access-Control-Request-Headers", ""
            ),
            "Access-Control-Max-Age": _REMEMBER_S,
        }
        if request.headers.get("Access-Control-Request-Private-Network") == "true":
            # A public page asks a server at home: who lists the page's origin wants that.
            allowed["Access-Control-Allow-Private-Network"] = "true"
        return web.Response(status=204, headers=allowed)

    async def _mark(self, request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get("Origin")
        if origin is None:
            return
        response.headers.add("Vary", "Origin")
        if self._access.allows_page(origin, request.host):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
