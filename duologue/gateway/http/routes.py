"""What a plain HTTP route is: where it stands, what it takes and gives, and who answers.

One list of these makes the application and the OpenAPI document. This module must not know any
route.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from duologue.engines.ports import WorkClass
from duologue.gateway.errors import Handler

JSON = "application/json"
FORM = "multipart/form-data"
EVENTS = "text/event-stream"
WAIT = "wait"
"""In the query of a WebSocket: how many seconds its client would wait for a slot."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a body may be.

    Args:
        media: Its content type.
        type: The message class for JSON and for the fields of a form; ``None``: bytes or text.
        examples: Bodies that work, for the document.
        files: Names of a form's parts that are files, and have to be there.
    """

    media: str
    type: Any = None
    examples: Sequence[object] = ()
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the path, or of the query."""

    name: str
    description: str
    in_path: bool = False


WAIT_PARAMETER = Parameter(WAIT, "Seconds to wait for a slot where none is free, as Prefer does.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route.

    Args:
        path: As aiohttp's router and OpenAPI write it, as ``/v1/models/{model}``.
        operation: Its name in the document, unique.
        summary: One line for people.
        body: What it takes; several kinds of content are alternatives. Empty: nothing.
        needs_body: Without one the request is refused.
        status: When it is done.
        answers: What a done one may hold.
        refusals: Statuses of its errors, besides those of keys and of admission.
        is_work: It needs models: it is refused before they are loaded, counts against the limit,
            ends with its client and has a time limit. Otherwise it is somebody's own business.
        is_socket: It becomes a WebSocket, which is work for as long as it is open, and has no other
            limit of time.
        work: Its class: it has a share of the slots of its own.
        needs_key: An API key is needed, where the server has any.
        timeout_s: Longest time for an answer, where the usual one is too short.
    """

    method: str
    path: str
    operation: str
    summary: str
    handle: Handler
    body: Sequence[Content] = ()
    needs_body: bool = True
    status: int = 200
    answers: Sequence[Content] = ()
    parameters: Sequence[Parameter] = ()
    refusals: Sequence[int] = ()
    is_work: bool = True
    is_socket: bool = False
    work: WorkClass = WorkClass.INTERACTIVE
    needs_key: bool = True
    timeout_s: float | None = None


def add_routes(router: web.UrlDispatcher, routes: Sequence[tuple[Route, Handler]]) -> None:
    """Put routes into an application, each with the handler that stands before its own."""
    for route, handle in routes:
        if route.method == "GET":
            router.add_get(route.path, handle)
        else:
            router.add_route(route.method, route.path, handle)
