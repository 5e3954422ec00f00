"""Errors as HTTP answers: the same table as for events, in the shape that the API's clients read.

This module must not know who raised them.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from duologue.core.errors import AuthError, CapacityError, DuologueError
from duologue.protocol.errors import ERROR_TABLE, error_body, error_code


def error_response(exc: DuologueError) -> web.Response:
    """Return the JSON answer for an error before an upgrade, or of a plain route."""
    row = ERROR_TABLE[error_code(exc)]
    headers = {}
    if isinstance(exc, CapacityError):
        headers["Retry-After"] = str(max(1, round(exc.retry_after_s)))
    if isinstance(exc, AuthError):
        headers["WWW-Authenticate"] = "Bearer"
    body = msgspec.json.encode({"error": error_body(exc)})
    return web.Response(
        status=row.http_status, body=body, content_type="application/json", headers=headers
    )
