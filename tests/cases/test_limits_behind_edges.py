"""Places, turns and limits of keys are the session host's: another gateway gives nobody more."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp

from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import ApiKeySettings, GatewaySettings
from duologue.jobs.settings import JobSettings
from duologue.sessions.settings import SessionSettings
from duologue.settings import Settings
from tests.cases.test_edges import UPGRADE, event_of
from tests.fakes.edged_gateway import EdgedGateway, edged_gateway
from tests.fakes.link import until
from tests.fakes.media_gateway import API_KEY, error_of, media_settings
from tests.fakes.small_gateway import small_settings
from tests.patience import PATIENCE_S

PATH = "/v1/realtime?model=echo"
QUEUED = f"{PATH}&queue=1"
KITCHEN = {"Authorization": "Bearer open-sesame-kitchen"}


def settings(max_sessions: int = 8, **gateway: Any) -> Settings:
    return small_settings().model_copy(
        update={
            "gateway": GatewaySettings(port=0, drain_timeout_s=0, **gateway),
            "sessions": SessionSettings(max_sessions=max_sessions),
        }
    )


class Lines:
    """Connections to both gateways, until ``stack`` is left."""

    def __init__(
        self, stack: AsyncExitStack, server: EdgedGateway, http: aiohttp.ClientSession
    ) -> None:
        self.server = server
        self.http = http
        self._stack = stack

    async def call(self, edge: int, path: str = PATH) -> aiohttp.ClientWebSocketResponse:
        return await self._stack.enter_async_context(
            self.http.ws_connect(f"{self.server.urls[edge]}{path}")
        )

    async def refused(self, edge: int, path: str = PATH) -> tuple[int, str, str | None]:
        url = f"{self.server.urls[edge]}{path}"
        async with self.http.get(url, headers=UPGRADE) as answer:
            assert int(answer.headers["Retry-After"]) > 0
            return await error_of(answer)

    async def knows(self, waiting: int) -> None:
        """Wait until all gateways know how many wait."""
        await until(lambda: all(edge.fleet.status.waiting == waiting for edge in self.server.edges))


async def place(call: aiohttp.ClientWebSocketResponse) -> tuple[int, int]:
    event = json.loads(await call.receive_str())
    assert event["type"] == "session.queued", event
    return event["position"], event["waiting"]


async def lines(stack: AsyncExitStack, asked: Settings, **headers: str) -> Lines:
    server = await stack.enter_async_context(edged_gateway(asked, edges=2))
    http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
    return Lines(stack, server, http)


async def test_calls_wait_in_one_queue_whichever_gateway_they_come_to() -> None:
    async with AsyncExitStack() as stack:
        at = await lines(stack, settings(max_sessions=1, queued_calls=2))
        first = await at.call(0)
        await event_of(first, "session.created")
        second = await at.call(1, QUEUED)
        assert await place(second) == (1, 1)
        third = await at.call(0, QUEUED)
        assert await place(third) == (2, 2)
        assert await at.refused(1, QUEUED) == (503, "server_full", None)
        await first.close()
        assert (await event_of(second, "session.created"))["type"] == "session.created"
        assert await place(third) == (1, 1)
        await at.knows(waiting=1)
        # The third came to the first gateway; who asks the second overtakes nobody there.
        for edge in (0, 1):
            assert await at.refused(edge) == (503, "server_full", None)
        await second.close()
        await event_of(third, "session.created")
        await third.close()
        outcomes = at.server.host.side.metrics.calls_queued
        assert outcomes["admitted"].value == 2


async def test_a_place_that_is_free_is_for_whoever_waits_for_it() -> None:
    async with AsyncExitStack() as stack:
        at = await lines(stack, settings(max_sessions=1, queued_calls=2))
        first = await at.call(0)
        await event_of(first, "session.created")
        second = await at.call(0, QUEUED)
        await place(second)
        await first.close()
        await at.server.host.side.sessions.wait_empty(PATIENCE_S)
        # Whatever the other gateway has heard: the host has the last word.
        assert (await at.refused(1))[1] == "server_full"
        await event_of(second, "session.created")


async def test_who_leaves_one_gateway_makes_those_at_the_other_move_up() -> None:
    async with AsyncExitStack() as stack:
        at = await lines(stack, settings(max_sessions=1, queued_calls=4))
        first = await at.call(0)
        await event_of(first, "session.created")
        waiting = [await at.call(number % 2, QUEUED) for number in range(3)]
        assert [await place(each) for each in waiting] == [(1, 1), (2, 2), (3, 3)]
        await waiting[1].close()
        assert await place(waiting[2]) == (2, 2)
        # A gateway that is gone takes those with it who waited there.
        at.server.edges[0].host.leave("server_shutting_down")
        await until(lambda: len(at.server.host.side.host.queue) == 0)
        await until(lambda: len(at.server.host.side.sessions) == 0)


async def test_one_who_waits_at_a_gateway_is_told_when_the_time_is_over() -> None:
    async with AsyncExitStack() as stack:
        asked = settings(max_sessions=1, queued_calls=2, queue_timeout_s=0.3)
        at = await lines(stack, asked)
        first = await at.call(0)
        await event_of(first, "session.created")
        second = await at.call(1, QUEUED)
        assert await place(second) == (1, 1)
        assert (await event_of(second, "error"))["error"]["code"] == "server_full"
        closed = await second.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1013)


async def test_a_key_has_so_many_sessions_at_all_gateways_together() -> None:
    key = ApiKeySettings(name="kitchen", key="open-sesame-kitchen", max_sessions=2)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        at = await lines(stack, settings(named_keys=(key,)), **KITCHEN)
        calls = [await at.call(edge) for edge in (0, 1)]
        for call in calls:
            await event_of(call, "session.created")
        for edge in (0, 1):
            assert (await at.refused(edge))[:2] == (429, "too_many_sessions")
        await calls[0].close()
        await until(lambda: len(at.server.host.side.sessions) == 1)
        await event_of(await at.call(1), "session.created")


async def test_calls_of_a_key_count_as_requests_at_all_gateways_together() -> None:
    key = ApiKeySettings(name="kitchen", key="open-sesame-kitchen", requests_per_minute=2)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        at = await lines(stack, settings(named_keys=(key,)), **KITCHEN)
        # At the same moment: there is no round of one gateway before the other's.
        first, second = await asyncio.gather(at.call(0), at.call(1))
        for call in (first, second):
            await event_of(call, "session.created")
        for edge in (0, 1):
            assert (await at.refused(edge))[:2] == (429, "rate_limited")


async def test_plain_requests_wait_for_a_slot_of_all_gateways_together(tmp_path: Path) -> None:
    http = HttpSettings(max_requests=1, queued_requests=1)
    door = GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,), http=http)
    asked = media_settings(gateway=door, jobs=JobSettings(folder=tmp_path))
    async with AsyncExitStack() as stack:
        at = await lines(stack, asked, Authorization=f"Bearer {API_KEY}")
        engine, slots = at.server.host.side.engine, at.server.host.side.slots
        patient = {"Prefer": "wait=30"}

        async def draw(edge: int, prompt: str, **headers: str) -> tuple[int, str]:
            url = f"{at.server.urls[edge]}/v1/images/generations"
            async with at.http.post(url, json={"prompt": prompt}, headers=headers) as answer:
                body = await answer.json()
                return answer.status, body["error"]["code"] if "error" in body else ""

        endless = asyncio.create_task(draw(0, "never"))
        await until(lambda: engine.stats().requests == 1)
        assert await draw(1, "waves") == (503, "server_full")
        async with asyncio.TaskGroup() as group:
            waits = group.create_task(draw(1, "waves", **patient))
            await until(lambda: slots.waiting == 1)
            assert await draw(0, "waves", **patient) == (503, "server_full"), "the queue is full"
            endless.cancel()
        assert waits.result() == (200, "")
        assert slots.fill == 0

        # A gateway that is gone takes its requests with it, and those that waited there.
        gone = [asyncio.create_task(draw(0, "never"))]
        await until(lambda: slots.fill == 1)
        gone.append(asyncio.create_task(draw(0, "never", **patient)))
        await until(lambda: slots.waiting == 1)
        links = at.server.host.server.edges
        next(link for link, edge in links.items() if edge.name == "edge-0").close("for the test")
        await until(lambda: slots.fill == slots.waiting == 0)
        assert await draw(1, "waves") == (200, "")
        for task in gone:
            assert await task == (503, "session_host_lost")
