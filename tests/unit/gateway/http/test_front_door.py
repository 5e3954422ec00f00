from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from duologue.core.errors import EngineError, ProtocolError
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.ws.route_sockets import RouteSockets
from duologue.hosts.port import Slot
from tests.unit.gateway.http.http_bench import error_of, nothing, served

UPGRADE = {
    "Connection": "upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def test_a_request_passes_with_its_key_alone() -> None:
    async with served(nothing, api_keys=("sesame",)) as client:
        async with client.post("/try") as answer:
            assert await error_of(answer) == (401, "invalid_api_key", None)
        async with client.post("/try", headers={"Authorization": "Bearer sesame"}) as answer:
            assert await answer.text() == "done"


async def test_work_waits_for_the_models_and_other_routes_do_not() -> None:
    async with served(nothing, is_loaded=False) as client, client.post("/try") as answer:
        assert await error_of(answer) == (503, "server_not_ready", None)
        assert answer.headers["Retry-After"] == "2"
    async with (
        served(nothing, is_loaded=False, is_work=False) as client,
        client.post("/try") as answer,
    ):
        assert answer.status == 200


async def test_only_so_many_requests_are_worked_on() -> None:
    arrived, leave = asyncio.Event(), asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        arrived.set()
        await leave.wait()
        return web.Response()

    async with (
        served(wait, HttpSettings(max_requests=1)) as client,
        asyncio.TaskGroup() as group,
    ):
        first = group.create_task(client.post("/try"))
        await arrived.wait()
        async with client.post("/try") as answer:
            assert await error_of(answer) == (503, "server_full", None)
        leave.set()
        assert (await first).status == 200
        async with client.post("/try") as answer:
            assert answer.status == 200


async def test_a_request_that_would_wait_has_its_turn_and_others_are_told_when_to_come_back() -> (
    None
):
    arrived, leave = asyncio.Event(), asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        arrived.set()
        await leave.wait()
        return web.Response()

    http = HttpSettings(max_requests=1, queued_requests=1, queue_timeout_s=10.0)
    async with served(wait, http) as client, asyncio.TaskGroup() as group:
        first = group.create_task(client.post("/try"))
        await arrived.wait()
        async with client.post("/try", headers={"Prefer": "wait=0"}) as answer:
            assert await error_of(answer) == (503, "server_full", None)
            assert int(answer.headers["Retry-After"]) > 0
        patient = group.create_task(client.post("/try", headers={"Prefer": "wait=10"}))
        leave.set()
        assert [(await first).status, (await patient).status] == [200, 200]


async def test_a_handler_ends_when_its_client_has_gone() -> None:
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return web.Response()

    async with served(wait) as client, asyncio.TaskGroup() as group:
        asking = group.create_task(client.post("/try"))
        await arrived.wait()
        asking.cancel()
        await ended.wait()


async def test_what_takes_too_long_is_given_up() -> None:
    async def wait(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with (
        served(wait, HttpSettings(request_timeout_s=0.01)) as client,
        client.post("/try") as answer,
    ):
        assert await error_of(answer) == (504, "stage_timeout", None)


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (ProtocolError("no", code="unsupported", param="x"), 400, "unsupported"),
        (EngineError("broken"), 500, "stage_failed"),
        (EngineError("odd", code="never_heard_of"), 500, "stage_failed"),
        (KeyError("a bug"), 500, "server_error"),
    ],
)
async def test_what_a_handler_raises_becomes_an_error(
    raised: Exception, status: int, code: str
) -> None:
    async def fail(_request: web.Request) -> web.Response:
        raise raised

    with capture_logs() as logs:
        async with served(fail) as client, client.post("/try") as answer:
            assert (await error_of(answer))[:2] == (status, code)
            assert "a bug" not in await answer.text()
    crashed = [entry for entry in logs if entry["event"] == "http_request_crashed"]
    assert len(crashed) == isinstance(raised, KeyError)


async def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise EngineError("broken")

    async with served(fail) as client, client.post("/try") as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientError):
            await answer.read()


async def test_an_answer_that_is_not_taken_holds_its_place() -> None:
    async def answer_much(_request: web.Request) -> web.Response:
        return web.Response(body=bytes(32 << 20))

    async with (
        served(answer_much, HttpSettings(max_requests=1)) as client,
        client.post("/try") as first,
    ):
        async with client.post("/try") as answer:
            assert await error_of(answer) == (503, "server_full", None)
        assert len(await first.read()) == 32 << 20
        async with client.post("/try") as answer:
            assert answer.status == 200
            assert len(await answer.read()) == 32 << 20


async def socket_until_it_closes(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_str("open")
    async for _ in socket:
        pass
    return socket


async def test_a_socket_holds_a_slot_from_before_its_upgrade_until_it_is_closed() -> None:
    http = HttpSettings(max_requests=1, queued_requests=1, queue_timeout_s=10.0)
    how = {"method": "GET", "is_socket": True}
    async with (
        served(socket_until_it_closes, http, **how) as client,
        asyncio.TaskGroup() as group,
    ):
        first = await client.ws_connect("/try")
        assert await first.receive_str() == "open"
        async with client.get("/try", headers=UPGRADE) as answer:
            assert await error_of(answer) == (503, "server_full", None)
            assert int(answer.headers["Retry-After"]) > 0
        by_header = group.create_task(client.ws_connect("/try", headers={"Prefer": "wait=10"}))
        await first.close()
        second = await by_header
        by_query = group.create_task(client.ws_connect("/try?wait=10"))
        await second.close()
        await (await by_query).close()


async def test_what_is_no_upgrade_takes_no_slot() -> None:
    async with served(nothing, is_loaded=False, method="GET", is_socket=True) as client:
        async with client.get("/try") as answer:
            assert (await error_of(answer))[0] == 400
        async with client.get("/try", headers=UPGRADE) as answer:
            assert await error_of(answer) == (503, "server_not_ready", None)


class LosingSlots:
    """A ``SlotsPort`` whose host may be lost."""

    def __init__(self) -> None:
        self.told: list[Callable[[], None]] = []

    @asynccontextmanager
    async def taken(
        self, _wanted: Slot, on_lost: Callable[[], None] | None = None
    ) -> AsyncIterator[None]:
        if on_lost is not None:
            self.told.append(on_lost)
        yield


async def test_a_socket_whose_slot_is_lost_is_closed() -> None:
    slots, sockets = LosingSlots(), RouteSockets()

    async def handle(request: web.Request) -> web.WebSocketResponse:
        async with sockets.hold(request, max_message_bytes=1024) as socket:
            await socket.send_str("open")
            await asyncio.Event().wait()
        return socket

    async with served(handle, method="GET", is_socket=True, slots=slots) as client:
        async with client.ws_connect("/try") as socket:
            assert await socket.receive_str() == "open"
            (lost,) = slots.told
            lost()
            lost()  # as often as it is said
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == aiohttp.WSCloseCode.SERVICE_RESTART
        assert len(sockets) == 0
