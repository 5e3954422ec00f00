"""How many WebSockets of a route are open, and how they end."""

from __future__ import annotations

from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from duologue.gateway.ws.route_sockets import RouteSockets


def application(sockets: RouteSockets, fault: Exception | None = None) -> web.Application:
    async def handle(request: web.Request) -> web.StreamResponse:
        async with sockets.hold(request, max_message_bytes=16) as socket:
            async for _ in socket:
                if fault is not None:
                    raise fault
        return socket

    app = web.Application()
    app.router.add_get("/", handle)
    return app


async def test_those_that_are_open_are_counted() -> None:
    sockets = RouteSockets()
    async with TestClient(TestServer(application(sockets))) as client:
        assert len(sockets) == 0
        socket = await client.ws_connect("/")
        assert len(sockets) == 1
        await socket.close()
        assert len(sockets) == 0


async def test_a_line_that_breaks_is_closed_and_gives_its_place_back() -> None:
    sockets = RouteSockets()
    async with TestClient(TestServer(application(sockets, ConnectionResetError()))) as client:
        socket = await client.ws_connect("/")
        await socket.send_str("hello")
        assert (await socket.receive()).type is WSMsgType.CLOSE
        assert socket.close_code == 1000
        assert len(sockets) == 0


async def test_everybody_is_told_that_the_server_goes_down() -> None:
    sockets = RouteSockets()
    async with TestClient(TestServer(application(sockets))) as client:
        socket = await client.ws_connect("/")
        said = socket.receive()
        await sockets.close_all()
        await said
        assert socket.close_code == 1001
