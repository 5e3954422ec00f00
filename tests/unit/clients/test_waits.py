from __future__ import annotations

import asyncio

import pytest

from duologue.clients.waits import Waits


async def test_a_reply_that_does_not_come_is_not_waited_for_longer() -> None:
    waits = Waits(0.01)
    with pytest.raises(TimeoutError):
        await waits.run(asyncio.Event().wait())


async def test_a_reply_is_returned() -> None:
    async def reply() -> str:
        return "yes"

    assert await Waits(5).run(reply()) == "yes"


async def test_time_stands_still_without_a_connection() -> None:
    waits = Waits(0.02)
    before, within = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(waits.run(before.wait()))
        await asyncio.sleep(0)
        waits.pause()
        second = group.create_task(waits.run(within.wait()))
        with pytest.raises(TimeoutError):
            await Waits(0.05).run(asyncio.Event().wait())
        assert not first.done()
        assert not second.done()
        waits.go_on()
        before.set()
        within.set()
    assert first.result() is True


async def test_afterwards_each_reply_has_its_time_again() -> None:
    waits = Waits(0.01)
    waits.pause()
    async with asyncio.TaskGroup() as group:
        late = group.create_task(_caught(waits))
        await asyncio.sleep(0)
        waits.go_on()
    assert isinstance(late.result(), TimeoutError)


async def _caught(waits: Waits) -> Exception | None:
    try:
        await waits.run(asyncio.Event().wait())
    except TimeoutError as exc:
        return exc
    return None
