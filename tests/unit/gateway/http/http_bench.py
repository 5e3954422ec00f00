"""Routes that do what a test wants, on a small server, and a client for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from duologue.gateway.errors import Handler
from duologue.gateway.http.routes import Route
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.hosts.request_slots import SlotsPort
from tests.unit.gateway.small_server import small_server


def route(handle: Handler, *, method: str = "POST", **how: Any) -> Route:
    how = {"path": "/try", "operation": "try", "summary": "Try.", **how}
    return Route(method=method, handle=handle, **how)


@asynccontextmanager
async def served(
    handle: Handler,
    http: HttpSettings | None = None,
    *,
    is_loaded: bool = True,
    slots: SlotsPort | None = None,
    **how: Any,
) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve a handler at ``/try``."""
    keys = how.pop("api_keys", ())
    gateway = GatewaySettings(http=http or HttpSettings(), api_keys=keys)
    routes = [route(handle, **how)]
    async with (
        small_server(gateway, routes=routes, is_loaded=is_loaded, slots=slots) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as client,
    ):
        yield client


async def error_of(answer: aiohttp.ClientResponse) -> tuple[int, str, str | None]:
    """Status, code and field of an answer that is an error."""
    error = (await answer.json())["error"]
    return answer.status, error["code"], error["param"]


async def nothing(_request: web.Request) -> web.Response:
    return web.Response(text="done")
