"""How many WebSockets of a route may be open, and how they end."""

from __future__ import annotations

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from duologue.core.errors import CapacityError
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


async def test_one_more_than_may_be_open_is_refused_until_one_has_gone() -> None:
    sockets = RouteSockets("things are open")
    async with TestClient(TestServer(application(sockets))) as client:
        sockets.check_room(1)
        socket = await client.ws_connect("/")
        with pytest.raises(CapacityError, match="1 things are open, the limit is 1"):
            sockets.check_room(1)
        await socket.close()
        sockets.check_room(1)


async def test_a_line_that_breaks_is_closed_and_gives_its_place_back() -> None:
    sockets = RouteSockets("things are open")
    async with TestClient(TestServer(application(sockets, ConnectionResetError()))) as client:
        socket = await client.ws_connect("/")
        await socket.send_str("hello")
        assert (await socket.receive()).type is WSMsgType.CLOSE
        assert socket.close_code == 1000
        sockets.check_room(1)


async def test_everybody_is_told_that_the_server_goes_down() -> None:
    sockets = RouteSockets("things are open")
    async with TestClient(TestServer(application(sockets))) as client:
        socket = await client.ws_connect("/")
        said = socket.receive()
        await sockets.close_all()
        await said
        assert socket.close_code == 1001
