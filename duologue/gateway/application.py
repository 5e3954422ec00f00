"""The gateway as an aiohttp application: every route, in one list.

This module must not know what a route does, nor how its parts are made.
"""

from __future__ import annotations

from aiohttp import web

from duologue.gateway.errors import errors_in_json
from duologue.gateway.http.client_secrets import ClientSecretRoutes
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.page import add_page
from duologue.gateway.http.status import StatusRoutes
from duologue.gateway.ws.realtime import RealtimeEndpoint


def make_application(
    realtime: RealtimeEndpoint,
    client_secrets: ClientSecretRoutes,
    status: StatusRoutes,
    cross_origin: CrossOrigin,
) -> web.Application:
    """Return the application with all routes."""
    app = web.Application(middlewares=[errors_in_json])
    router = app.router
    router.add_get("/v1/realtime", realtime.handle)
    router.add_get("/realtime", realtime.handle)
    router.add_get("/v1/duplex", realtime.handle)
    router.add_post("/v1/realtime/client_secrets", client_secrets.create)
    router.add_get("/v1/models", status.models)
    router.add_get("/health", status.health)
    router.add_get("/ready", status.ready)
    router.add_get("/metrics", status.metrics)
    cross_origin.install(app)
    add_page(router)
    return app
