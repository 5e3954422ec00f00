"""What is counted of HTTP requests."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from duologue.gateway.http.counting import NOWHERE, PAGE, RequestCount
from duologue.telemetry import LabelSets, Metrics


async def answer(request: web.Request) -> web.Response:
    return web.Response(status=int(request.match_info.get("status", "200")))


async def test_requests_are_counted_by_route_and_class_and_paths_cannot_add_to_the_labels() -> None:
    metrics = Metrics(LabelSets())
    app = web.Application()
    for path in ("/", "/main.js", "/v1/things/{status}"):
        app.router.add_get(path, answer)
    RequestCount(metrics).install(app)
    async with TestClient(TestServer(app)) as client:
        for path in ("/", "/main.js", "/v1/things/200", "/v1/things/404", "/v1/things/503"):
            await client.get(path)
        for number in range(5):
            await client.get(f"/made-up/{number}")
    figure = next(f for f in metrics if f.name == "duologue_http_requests_total")
    assert figure.labels == ("route", "status")
    counted = {pair: counter.value for pair, counter in figure.members if counter.value}
    assert counted == {
        (PAGE, "2xx"): 2,
        ("/v1/things/{status}", "2xx"): 1,
        ("/v1/things/{status}", "4xx"): 1,
        ("/v1/things/{status}", "5xx"): 1,
        (NOWHERE, "4xx"): 5,
    }
    assert len(list(figure.members)) == 4 * 6
