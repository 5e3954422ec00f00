from __future__ import annotations

import pytest
from aiohttp import web

from duologue.gateway.http.cors import EXPOSED_HEADERS
from duologue.gateway.http.routes import Route
from duologue.gateway.settings import GatewaySettings
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server

APP = "https://app.example"
SETTINGS = GatewaySettings(allowed_origins=(APP,), api_keys=("sesame",))
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-openai-agents-sdk",
}


@pytest.mark.parametrize("path", ["/v1/models", "/v1/realtime/calls", "/nothing"])
async def test_a_page_of_an_allowed_origin_may_send_what_sdks_send(path: str) -> None:
    async with small_server(SETTINGS) as server, connected(server.port) as peer:
        answer = await peer.ask(path, {"Origin": APP, **PREFLIGHT}, method="OPTIONS")
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert answer.headers["Access-Control-Allow-Headers"] == (
            "authorization,content-type,x-openai-agents-sdk"
        )
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert answer.headers["Vary"] == "Origin"


async def test_a_public_page_may_ask_a_server_at_home_if_its_origin_is_listed() -> None:
    asks = PREFLIGHT | {"Access-Control-Request-Private-Network": "true"}
    name = "Access-Control-Allow-Private-Network"
    async with small_server(SETTINGS) as server, connected(server.port) as peer:
        answer = await peer.ask("/v1/models", {"Origin": APP, **asks}, method="OPTIONS")
        assert answer.headers[name] == "true"
        answer = await peer.ask("/v1/models", {"Origin": APP, **PREFLIGHT}, method="OPTIONS")
        assert name not in answer.headers
        evil = {"Origin": "https://evil.example", **asks}
        answer = await peer.ask("/v1/models", evil, method="OPTIONS")
        assert name not in answer.headers


async def test_must_have_33_a_streamed_answer_may_be_read_and_its_location_too() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Location": "/v1/realtime/calls/rtc_1"})
        response.content_length = 2
        await response.prepare(request)
        await response.write(b"ok")
        return response

    route = Route(method="GET", path="/try", operation="try", summary="Try.", handle=stream)
    async with (
        small_server(SETTINGS, routes=[route]) as server,
        connected(server.port) as peer,
    ):
        answer = await peer.ask("/try", {"Origin": APP, "api-key": "sesame"})
        assert (answer.status, answer.body) == (200, b"ok")
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert "Location" in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_a_page_of_another_origin_may_not(origin: str) -> None:
    async with small_server(SETTINGS) as server, connected(server.port) as peer:
        answer = await peer.ask("/v1/models", {"Origin": origin, **PREFLIGHT}, method="OPTIONS")
        assert answer.status == 403
        assert answer.json["error"]["code"] == "origin_not_allowed"
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "status"), [("/ready", 200), ("/v1/models", 401), ("/v1/realtime", 401), ("/x", 404)]
)
async def test_every_answer_may_be_read_errors_too(path: str, status: int) -> None:
    async with small_server(SETTINGS) as server, connected(server.port) as peer:
        answer = await peer.ask(path, {"Origin": APP})
        assert answer.status == status
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert answer.headers["Access-Control-Expose-Headers"] == EXPOSED_HEADERS


async def test_answers_to_others_carry_no_leave_to_read_them() -> None:
    async with small_server(SETTINGS) as server, connected(server.port) as peer:
        answer = await peer.ask("/ready", {"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert answer.headers["Vary"] == "Origin"
        answer = await peer.ask("/ready")
        assert "Vary" not in answer.headers


async def test_a_page_of_an_allowed_origin_may_hold_a_call_and_another_may_not() -> None:
    async with small_server(SETTINGS) as server:
        async with connected(server.port) as peer:
            await peer.upgrade("/v1/realtime", Origin=APP, Authorization="Bearer sesame")
        async with connected(server.port) as peer:
            headers = {"Origin": "https://evil.example", "Authorization": "Bearer sesame"}
            answer = await peer.ask("/v1/realtime", headers)
            assert answer.status == 403
            assert len(server.sessions) <= 1
