"""The gateway as an aiohttp application: every route, in one list.

This module must not know what a route does, nor how its parts are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from duologue.core.ids import id_maker
from duologue.gateway.errors import errors_in_json
from duologue.gateway.http.cors import CrossOrigin
from duologue.gateway.http.front_door import FrontDoor
from duologue.gateway.http.page import add_page
from duologue.gateway.http.request_id import RequestIds
from duologue.gateway.http.routes import Route, add_routes
from duologue.gateway.telephony.endpoint import PhoneEndpoint
from duologue.gateway.ws.form import PATHS
from duologue.gateway.ws.realtime import RealtimeEndpoint


def make_application(
    realtime: RealtimeEndpoint,
    phone: PhoneEndpoint,
    routes: Sequence[Route],
    door: FrontDoor,
    cross_origin: CrossOrigin,
) -> web.Application:
    """Return the application with all routes.

    Args:
        routes: Those of plain HTTP; a new family is added in ``composition/gateway_side.py``.
        door: Stands before them.
    """
    app = web.Application(middlewares=[errors_in_json])
    router = app.router
    for path in PATHS:
        router.add_get(path, realtime.handle)
    phone.add_to(router)
    add_routes(router, [(route, door.before(route)) for route in routes])
    RequestIds(id_maker()).install(app)
    cross_origin.install(app)
    add_page(router)
    return app
