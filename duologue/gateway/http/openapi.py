"""``/openapi.json``: the plain HTTP routes as an OpenAPI 3.1 document, made from their classes.

This module must not know any route.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec
from aiohttp import web

from duologue import __version__
from duologue.gateway.errors import ErrorPage
from duologue.gateway.http.routes import EVENTS, JSON, Content, Parameter, Route

_REFERENCE = "#/components/schemas/{name}"
_BINARY = {"type": "string", "format": "binary"}
_ERRORS: Mapping[int, str] = {
    400: "The request cannot be carried out as it is; `param` names the field.",
    401: "The API key is missing or not valid.",
    403: "The page, or the key, may not do this.",
    404: "There is no such model or thing.",
    408: "The body did not come in time.",
    409: "It contradicts the state that things are in.",
    410: "It was there, and is no more.",
    413: "The body, or something in it, is over a limit.",
    415: "The body is of a type that is not read here.",
    422: "What was asked for could not be made.",
    429: "Too many requests with this key; `Retry-After` says when to come again.",
    500: "A model failed.",
    501: "This server is not equipped for it.",
    503: "The server is starting, full or going down; `Retry-After` says when to come again.",
    504: "A model did not answer in time.",
}
_OF_KEYS = (401, 403)
_OF_WORK = (429, 503)


class OpenApiRoutes:
    """The document of some routes, and the route that serves it.

    Args:
        routes: All others.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._own = Route(
            method="GET",
            path="/openapi.json",
            operation="getOpenApi",
            summary="This document.",
            handle=self.get,
            answers=(Content(JSON),),
            is_work=False,
            needs_key=False,
        )
        self._page = msgspec.json.encode(document([*routes, self._own]))

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (self._own,)

    async def get(self, _request: web.Request) -> web.Response:
        """Answer with the document."""
        return web.Response(body=self._page, content_type=JSON)


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of some routes."""
    types = list(dict.fromkeys([ErrorPage, *_types(routes)]))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duologue",
            "version": __version__,
            "description": "Plain HTTP routes. Calls are held over WebSocket: docs/protocol.md.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(routes: Sequence[Route]) -> Iterator[Any]:
    for route in routes:
        for content in (*route.body, *route.answers):
            yield from _members(content.type)


def _members(type_: Any) -> Sequence[Any]:
    """Return the classes that a body may be of."""
    return () if type_ is None else get_args(type_) or (type_,)


def _operation(route: Route, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "security": [{"key": []}] if route.needs_key else [],
        "responses": _responses(route, schema_of),
    }
    if route.parameters:
        operation["parameters"] = [_parameter(each) for each in route.parameters]
    if route.body:
        operation["requestBody"] = {
            "required": route.needs_body,
            "content": _content(route.body, schema_of),
        }
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "path" if parameter.in_path else "query",
        "required": parameter.in_path,
        "description": parameter.description,
        "schema": {"type": "string", "minLength": int(parameter.in_path)},
    }


def _responses(route: Route, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done."}
    if route.answers:
        done["content"] = _content(route.answers, schema_of)
    error = {JSON: {"schema": schema_of[ErrorPage]}}
    refusals = {
        *route.refusals,
        *(_OF_KEYS if route.needs_key else ()),
        *(_OF_WORK if route.is_work else ()),
    }
    responses = {str(route.status): done}
    for status in sorted(refusals):
        responses[str(status)] = {"description": _ERRORS[status], "content": error}
    responses["default"] = {"description": "Any other error.", "content": error}
    return responses


def _content(contents: Sequence[Content], schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for content in contents:
        members = [schema_of[each] for each in _members(content.type)]
        schema: dict[str, Any] = _free(content.media)
        if members:
            schema = members[0] if len(members) == 1 else {"anyOf": members}
        if content.media == EVENTS:
            schema = _event(schema)
        if content.files:
            schema = _with_files(schema, content.files)
        entry: dict[str, Any] = {"schema": schema}
        if content.examples:
            entry["examples"] = {
                f"example{number}": {"value": value}
                for number, value in enumerate(content.examples, 1)
            }
        found[content.media] = entry
    return found


def _free(media: str) -> dict[str, Any]:
    """Return the schema of what has no class: JSON of any kind, text, or bytes."""
    if media == JSON:
        return {}
    return {"type": "string"} if media.startswith("text/") else _BINARY


def _event(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one event of a stream."""
    json = {"type": "string", "contentMediaType": JSON, "contentSchema": data}
    return {
        "type": "object",
        "description": "One event; errors on the way are events with an ErrorPage.",
        "properties": {
            "event": {"type": "string"},
            "data": {"anyOf": [json, {"const": "[DONE]"}]},
        },
        "required": ["data"],
    }


def _with_files(schema: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    parts = {"type": "object", "properties": dict.fromkeys(files, _BINARY), "required": list(files)}
    return {"allOf": [schema, parts]}
