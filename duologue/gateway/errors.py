"""Errors as HTTP answers: the same table as for events, in the shape that the API's clients read.

This module must not know who raised them.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec
from aiohttp import web

from duologue.core.errors import CapacityError, DuologueError, RateLimited
from duologue.protocol.errors import ERROR_TABLE, ErrorCode, error_body, error_code
from duologue.protocol.events import ErrorBody

UNKNOWN_URL = "unknown_url"
METHOD_NOT_SUPPORTED = "method_not_supported"

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ErrorPage(msgspec.Struct, frozen=True):
    """The body of an answer that is an error."""

    error: ErrorBody


def error_response(exc: DuologueError) -> web.Response:
    """Return the JSON answer for an error before an upgrade, or of a plain route."""
    return refusal(exc, _page(error_body(exc)))


def refusal(exc: DuologueError, page: msgspec.Struct) -> web.Response:
    """Return an answer with the status and the headers of an error, and any body."""
    status = ERROR_TABLE[error_code(exc)].http_status
    headers = {}
    if isinstance(exc, CapacityError | RateLimited):
        headers["Retry-After"] = str(max(1, math.ceil(exc.retry_after_s)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return json_answer(page, status, headers)


def json_answer(
    page: msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an answer in JSON."""
    return web.Response(
        status=status,
        body=msgspec.json.encode(page),
        content_type="application/json",
        headers=headers,
    )


@web.middleware
async def errors_in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what no route answers, a path or a method, in the same shape."""
    try:
        return await handler(request)
    except DuologueError as exc:
        return error_response(exc)
    except web.HTTPError as exc:
        allowed = exc.headers.get("Allow")
        asked = f"{request.method} {request.path[:200]}"
        if exc.status == 404:
            body = _invalid(f"there is nothing at {asked}; GET /openapi.json has what there is")
            return json_answer(_page(msgspec.structs.replace(body, code=UNKNOWN_URL)), 404)
        if allowed is None:
            body = _invalid(f"{asked}: {exc.reason}")
            code = ErrorCode.MESSAGE_TOO_LARGE if exc.status == 413 else ErrorCode.INVALID_REQUEST
            return json_answer(_page(msgspec.structs.replace(body, code=code)), exc.status)
        body = _invalid(f"{asked} is not possible; allowed here: {allowed}")
        body = msgspec.structs.replace(body, code=METHOD_NOT_SUPPORTED)
        return json_answer(ErrorPage(body), exc.status, {"Allow": allowed})


def _page(body: ErrorBody) -> ErrorPage:
    """Return a page that can be sent: what a client's bytes were quoted from may be no text."""
    param = None if body.param is None else _text(body.param)
    return ErrorPage(msgspec.structs.replace(body, message=_text(body.message), param=param))


def _text(said: str) -> str:
    return said.encode(errors="replace").decode()


def _invalid(message: str) -> ErrorBody:
    return ErrorBody(type="invalid_request_error", message=message)
