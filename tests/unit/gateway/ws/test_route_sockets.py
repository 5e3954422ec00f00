"""How many WebSockets of a route are open, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from duologue.gateway.ws.route_sockets import RouteSockets
from tests.patience import PATIENCE_S, until
from tests.unit.gateway.raw_websocket import PING, connected

MUCH = bytes(32 << 20)
"""More than the kernel takes of what nobody reads."""


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
        await sockets.close_all(PATIENCE_S)
        message = await said
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1001)


class Deaf:
    """A route that sends much, and a client of it that reads nothing but pings."""

    def __init__(self, sockets: RouteSockets) -> None:
        self.sockets = sockets
        self.handler: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.handler = asyncio.current_task()
        try:
            async with (
                self.sockets.hold(request, max_message_bytes=1 << 20) as socket,
                asyncio.TaskGroup() as group,
            ):
                group.create_task(socket.send_bytes(MUCH))
                async for _ in socket:
                    pass
        finally:
            self.is_over.set()
        return socket

    @asynccontextmanager
    async def met(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_get("/", self.handle)
        async with TestServer(app) as server, connected(server.port or 0, is_deaf=True) as line:
            await line.upgrade("/")
            line.send(PING, b"still there")
            await until(lambda: len(self.sockets) == 1)
            yield


async def test_one_that_takes_nothing_is_let_go_when_the_server_goes_down() -> None:
    deaf = Deaf(RouteSockets())
    async with deaf.met():
        async with asyncio.timeout(PATIENCE_S):
            await deaf.sockets.close_all(0.05)
            await deaf.is_over.wait()
        assert len(deaf.sockets) == 0


async def test_one_that_is_saying_goodbye_to_no_avail_is_let_go_too() -> None:
    deaf = Deaf(RouteSockets())
    async with deaf.met():
        (socket,) = deaf.sockets._open
        async with asyncio.TaskGroup() as group:
            group.create_task(socket.close())  # as a route does that has found a fault
            await until(lambda: socket.closed)
            async with asyncio.timeout(PATIENCE_S):
                await deaf.sockets.close_all(0.05)
                await deaf.is_over.wait()


async def test_one_that_takes_no_goodbye_is_let_go_when_its_handler_is_cancelled() -> None:
    deaf = Deaf(RouteSockets(goodbye_s=0.05))
    async with deaf.met():
        assert deaf.handler is not None
        deaf.handler.cancel()
        async with asyncio.timeout(PATIENCE_S):
            await deaf.is_over.wait()
