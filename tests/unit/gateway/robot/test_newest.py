from __future__ import annotations

import asyncio

from duologue.gateway.robot.newest import Newest


async def test_the_newest_wins_and_the_other_is_stale() -> None:
    newest: Newest[int] = Newest()
    assert not newest.put(1)
    assert newest.put(2)
    assert await newest.take() == 2
    assert not newest.put(3), "what was taken is not stale"
    assert len(newest) == 1
    assert newest.clear()
    assert not newest.clear()


async def test_who_takes_waits() -> None:
    newest: Newest[int] = Newest()
    async with asyncio.TaskGroup() as group:
        taker = group.create_task(newest.take())
        await asyncio.sleep(0)
        assert not taker.done()
        newest.put(1)
    assert taker.result() == 1
