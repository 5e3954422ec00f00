from __future__ import annotations

import asyncio

import pytest

from duologue.core.errors import EngineError
from duologue.engines.messages import Stop, WorkerSpec
from duologue.engines.pools.fleet import Fleet
from duologue.engines.pools.replica import Replica, ReplicaChange, ReplicaState
from duologue.engines.settings import EngineSettings
from tests.fakes.executor import FakeExecutor
from tests.patience import PATIENCE_S


class Owner:
    """A pool that only passes on what the fleet must hear."""

    def __init__(self) -> None:
        self.fleet: Fleet | None = None

    def on_report(self, replica: Replica, report: object) -> None: ...

    def starts_asleep(self, replica: Replica) -> bool:
        return False

    def on_change(self, replica: Replica, change: ReplicaChange) -> None:
        assert self.fleet is not None
        self.fleet.on_change(change)


class Scene:
    """A fleet of two whose workers are played by the test."""

    def __init__(self) -> None:
        self.executor = FakeExecutor()
        owner = Owner()
        self.replicas = [
            Replica(
                WorkerSpec(name=f"stage/{number}", runner="script"),
                self.executor,
                owner,
                EngineSettings(restart_backoff_s=0.001),
            )
            for number in range(2)
        ]
        self.fleet = owner.fleet = Fleet(self.replicas, [self.executor], stop_timeout_s=0.01)
        self.heard: list[ReplicaChange] = []

    async def started(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.fleet.start(self.heard.append))
        await self.until_workers(2)
        return task

    async def until_workers(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.executor.workers) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)


async def test_it_is_ready_when_all_are_and_tells_of_each() -> None:
    scene = Scene()
    start = await scene.started()
    scene.executor.workers[1].warm()
    assert not start.done()
    scene.executor.workers[0].warm()
    await start
    assert [change.name for change in scene.heard] == ["stage/1", "stage/0"]
    await scene.fleet.stop()


async def test_one_that_dies_meanwhile_fails_the_start_and_stops_the_rest() -> None:
    scene = Scene()
    start = await scene.started()
    scene.executor.workers[0].lose("no file", code="invalid_config")
    said = "stage/0 died: no file \\(in the phase 'spawn' of its start\\)"
    with pytest.raises(EngineError, match=said):
        await start
    assert scene.executor.workers[1].killed
    assert scene.executor.closed == 1


async def test_one_that_dies_later_is_replaced_and_nobody_is_told() -> None:
    scene = Scene()
    start = await scene.started()
    for worker in scene.executor.workers:
        worker.warm()
    await start
    scene.executor.workers[0].lose()
    await scene.until_workers(3)
    scene.executor.workers[2].warm()
    assert [change.state for change in scene.heard] == [ReplicaState.READY] * 2
    await scene.fleet.stop()


async def test_stopping_asks_all_at_once_and_says_whether_all_left() -> None:
    scene = Scene()
    start = await scene.started()
    for worker in scene.executor.workers:
        worker.warm()
    await start
    stop = asyncio.create_task(scene.fleet.stop())
    async with asyncio.timeout(PATIENCE_S):
        while not all(Stop() in worker.sent for worker in scene.executor.workers):  # noqa: ASYNC110
            await asyncio.sleep(0)
    scene.executor.workers[0].lose("told to stop")
    assert not await stop
    assert [worker.killed for worker in scene.executor.workers] == [False, True]
    assert scene.executor.closed == 1


async def test_a_crash_of_our_own_code_fails_the_start_instead_of_hanging_it() -> None:
    scene = Scene()

    async def crash() -> None:
        raise LookupError("a bug")

    scene.replicas[0].run = crash  # type: ignore[method-assign]
    with pytest.raises(LookupError, match="a bug"):
        await scene.fleet.start(None)


async def test_stopping_what_was_not_started_is_no_trouble() -> None:
    assert await Scene().fleet.stop()
