from __future__ import annotations

from aiohttp import web

from duologue.gateway.http.routes import add_routes
from tests.unit.gateway.http.http_bench import nothing, route


def test_each_route_stands_behind_its_door() -> None:
    async def door(request: web.Request) -> web.Response:
        return await nothing(request)

    app = web.Application()
    add_routes(
        app.router, [(route(nothing, path="/a"), door), (route(nothing, method="GET"), door)]
    )
    found = {(each.method, each.get_info()["path"]): each.handler for each in app.router.routes()}
    assert found == {("POST", "/a"): door, ("GET", "/try"): door, ("HEAD", "/try"): door}
