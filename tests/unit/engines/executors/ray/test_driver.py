from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from duologue.core.errors import EngineError
from duologue.engines.executors.ray.driver import Driver
from duologue.engines.executors.ray.messages import (
    Birth,
    Born,
    Find,
    Found,
    FromDriver,
    Gone,
    Join,
    Joined,
    Kill,
    NotJoined,
)
from duologue.engines.messages import Placement
from tests.patience import PATIENCE_S

PLACE = Placement(group="speech", strategy="PACK", bundles=({"CPU": 1.0},), index=0)
BIRTH = Birth(name="stage/0", env={})


class Played:
    """A cluster with one actor, both played by the test."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.joinable = True
        self.left = False
        self.hangs = False
        self.killed = 0
        self.problem = ""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def join(self, address: str) -> None:
        if not self.joinable:
            raise EngineError(f"nobody is at {address}")

    async def reserve(self, placement: Placement) -> None:
        await self.room.wait()

    async def give_up(self, placement: Placement) -> str:
        return f"no room for {placement.group}"

    async def start(self, placement: Placement) -> Played:
        return self

    async def leave(self) -> None:
        self.left = True

    # Of the actor

    async def listen(self) -> tuple[str, int]:
        if self.hangs:
            await asyncio.Event().wait()
        return "10.0.0.2", 4000

    async def bear(self, birth: Birth, secret: bytes) -> None:
        if self.problem:
            raise EngineError(self.problem)

    async def wait(self) -> str:
        return await self.ended

    async def kill(self) -> None:
        self.killed += 1


class Scene:
    """A driver that has joined."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.cluster = Played()
        self.said: list[FromDriver] = []
        self.driver = Driver(self.cluster, self.said.append, group)

    async def says(self, *news: FromDriver) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.said) < len(news):  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert self.said == list(news)
        self.said.clear()


@asynccontextmanager
async def driving(place_timeout_s: float = 10) -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        scene = Scene(group)
        assert await scene.driver.join(Join("auto", place_timeout_s))
        await scene.says(Joined())
        yield scene
        await scene.driver.leave()
        assert scene.cluster.left


async def test_a_worker_is_placed_born_and_ends() -> None:
    async with driving() as scene:
        scene.cluster.room.set()
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Found(1, "10.0.0.2", 4000), Born(1))
        scene.cluster.ended.set_result("it left")
        await scene.says(Gone(1, "it left"))
        assert scene.cluster.killed == 1, "its actor has nothing more to do"


async def test_a_lost_actor_is_the_end_of_its_worker() -> None:
    async with driving() as scene:
        scene.cluster.room.set()
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Found(1, "10.0.0.2", 4000), Born(1))
        scene.cluster.ended.set_exception(EngineError("its actor was lost"))
        await scene.says(Gone(1, "its actor was lost"))


async def test_where_there_is_no_room_in_time_it_says_what_there_is() -> None:
    async with driving(place_timeout_s=0.01) as scene:
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Gone(1, "no room for speech"))


async def test_where_there_is_room_and_no_actor_in_time_it_says_so() -> None:
    async with driving(place_timeout_s=0.01) as scene:
        scene.cluster.room.set()
        scene.cluster.hangs = True
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Gone(1, "its actor did not start within 0.01 s"))
        assert scene.cluster.killed == 1


async def test_a_worker_that_cannot_be_started_is_gone_with_the_reason() -> None:
    async with driving() as scene:
        scene.cluster.room.set()
        scene.cluster.problem = "no such interpreter"
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Found(1, "10.0.0.2", 4000), Gone(1, "no such interpreter"))


async def test_one_can_be_got_rid_of_at_any_time() -> None:
    async with driving() as scene:
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await asyncio.sleep(0)
        scene.driver.take(Kill(1))
        await scene.says(Gone(1, "it was killed"))
        scene.driver.take(Kill(1))
        scene.cluster.room.set()
        scene.driver.take(Find(2, PLACE, BIRTH, b"secret"))
        await scene.says(Found(2, "10.0.0.2", 4000), Born(2))
        scene.driver.take(Kill(2))
        await scene.says(Gone(2, "it was killed"))
        assert scene.cluster.killed == 1


async def test_leaving_ends_all_workers() -> None:
    async with driving() as scene:
        scene.cluster.room.set()
        scene.driver.take(Find(1, PLACE, BIRTH, b"secret"))
        await scene.says(Found(1, "10.0.0.2", 4000), Born(1))
    assert scene.said == [Gone(1, "it was killed")]
    assert scene.cluster.killed == 1


async def test_a_cluster_that_is_not_there_is_told_with_the_reason() -> None:
    async with asyncio.TaskGroup() as group:
        scene = Scene(group)
        scene.cluster.joinable = False
        assert not await scene.driver.join(Join("10.0.0.1:6379", 1))
        await scene.says(NotJoined("nobody is at 10.0.0.1:6379"))
