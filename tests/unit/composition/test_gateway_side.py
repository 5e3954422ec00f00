from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest

from duologue.composition.engine_side import make_engine_side
from duologue.composition.gateway_side import Ground, drained, make_gateway_side
from duologue.composition.kept import make_answers
from duologue.core.clock import SystemClock
from tests.fakes.small_gateway import small_settings


async def test_it_listens_until_it_is_undone() -> None:
    settings, clock = small_settings(), SystemClock()
    side = make_engine_side(settings, clock)
    ground = Ground(
        host=side.host,
        engine=side.engine,
        plugins=side.plugins,
        metrics=side.metrics,
        clock=clock,
        wheel=side.wheel,
        workers=side.workers,
        slots=side.slots,
        answers=make_answers(settings.gateway.http, clock),
    )
    gateway = make_gateway_side(settings, ground)
    assert ("GET", "/ready") in gateway.paths
    ended: list[str] = []
    async with AsyncExitStack() as undo, aiohttp.ClientSession() as http:
        gateway.undone_by(undo, lambda: ended.append("sessions"))
        await gateway.start()
        url = gateway.url
        async with http.get(f"{url}/health") as answer:
            assert answer.status == 200
        async with http.get(f"{url}/ready") as answer:
            assert (await answer.json())["error"]["code"] == "server_not_ready"
        await gateway.stop_listening()
        async with aiohttp.ClientSession() as other:
            with pytest.raises(aiohttp.ClientConnectorError):
                await other.get(f"{url}/health")
        assert ended == []
    assert ended == ["sessions"]


@pytest.mark.parametrize("in_a_hurry", [False, True])
async def test_what_ends_by_itself_is_waited_for_unless_somebody_is_in_a_hurry(
    in_a_hurry: bool,
) -> None:
    stop_now, idle = asyncio.Event(), asyncio.Event()
    (stop_now if in_a_hurry else idle).set()
    async with asyncio.TaskGroup() as group:

        async def wait() -> None:
            await idle.wait()

        await drained(group.create_task(wait()), stop_now)
