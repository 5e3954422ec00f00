from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from duologue.core.errors import EngineError
from duologue.engines.executors.base import Loss
from duologue.engines.messages import Begun, Cancel, JobEnded, Ready, Report, Stop, WorkerSpec
from duologue.engines.pools.replica import Replica, ReplicaChange, ReplicaState
from duologue.engines.ports import Outcome
from duologue.engines.settings import EngineSettings
from tests.fakes.executor import FakeExecutor, FakeWorker
from tests.patience import PATIENCE_S

SPEC = WorkerSpec(name="stage/0", runner="script")
STARTING, READY = ReplicaState.STARTING, ReplicaState.READY
FAILING, STOPPED = ReplicaState.FAILING, ReplicaState.STOPPED


class Owner:
    """Keeps what a replica says."""

    def __init__(self) -> None:
        self.changes: list[ReplicaChange] = []
        self.reports: list[Report] = []
        self.asleep = False

    def on_report(self, replica: Replica, report: Report) -> None:
        self.reports.append(report)

    def starts_asleep(self, replica: Replica) -> bool:
        return self.asleep

    def on_change(self, replica: Replica, change: ReplicaChange) -> None:
        assert replica.state is change.state
        self.changes.append(change)

    @property
    def states(self) -> list[ReplicaState]:
        return [change.state for change in self.changes]


class Scene:
    """A replica that is kept alive by a task."""

    def __init__(self, executor: FakeExecutor, **settings: float) -> None:
        self.executor = executor
        self.owner = Owner()
        self.replica = Replica(
            SPEC, executor, self.owner, EngineSettings(**{"restart_backoff_s": 0.001, **settings})
        )

    async def worker(self, number: int) -> FakeWorker:
        """The worker that is started as number so and so."""
        await until(lambda: len(self.executor.workers) > number)
        return self.executor.workers[number]


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0)


@asynccontextmanager
async def running(executor: FakeExecutor, **settings: float) -> AsyncIterator[Scene]:
    scene = Scene(executor, **settings)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.replica.run())
        try:
            yield scene
        finally:
            task.cancel()


async def test_it_is_ready_when_its_worker_is_warm() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        assert scene.replica.state is STARTING
        worker.warm()
        assert scene.owner.changes == [ReplicaChange("stage/0", READY, took_s=0.5)]
        assert scene.owner.reports == []


async def test_what_its_worker_says_and_hears_passes_through() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        worker.warm()
        worker.report(JobEnded("a", Outcome.COMPLETED))
        assert scene.owner.reports == [Report([JobEnded("a", Outcome.COMPLETED)])]
        scene.replica.send(Cancel("b"))
        assert worker.sent == [Cancel("b")]


async def test_a_lost_worker_is_replaced() -> None:
    async with running(FakeExecutor()) as scene:
        (await scene.worker(0)).warm()
        (await scene.worker(0)).lose("out of luck")
        scene.replica.send(Cancel("nobody hears this"))
        (await scene.worker(1)).warm()
        assert scene.owner.states == [READY, STARTING, READY]
        assert scene.owner.changes[1].loss == Loss("replica_lost", "out of luck")
        assert scene.replica.restarts == 1


async def test_a_worker_that_dies_before_it_is_ready_makes_it_failing() -> None:
    async with running(FakeExecutor()) as scene:
        (await scene.worker(0)).lose("no such file", code="invalid_config")
        assert scene.owner.states == [FAILING]
        (await scene.worker(1)).warm()
        assert scene.replica.state is READY


async def test_a_worker_that_cannot_be_started_is_tried_again() -> None:
    executor = FakeExecutor()
    executor.refusal = EngineError("no interpreter")
    async with running(executor) as scene:
        await until(lambda: len(scene.owner.changes) == 2)
        assert scene.owner.states == [FAILING, FAILING]
        executor.refusal = None
        (await scene.worker(0)).warm()
        assert scene.replica.state is READY


async def test_the_wait_grows_with_each_failure_in_a_row_up_to_its_limit() -> None:
    executor = FakeExecutor()
    executor.refusal = EngineError("no interpreter")
    async with running(executor, restart_backoff_s=0.001, restart_backoff_max_s=0.002) as scene:
        await until(lambda: len(scene.owner.changes) == 5)
        assert [scene.replica.backoff_s(failures) for failures in range(5)] == [
            0.001,
            0.002,
            0.002,
            0.002,
            0.002,
        ]


async def test_a_worker_that_is_never_ready_is_killed_and_replaced() -> None:
    async with running(FakeExecutor(), start_timeout_s=0.01) as scene:
        first = await scene.worker(0)
        await scene.worker(1)
        assert first.killed
        assert scene.owner.states[0] is FAILING


async def test_a_start_that_hangs_is_given_up_and_tried_again() -> None:
    async with running(FakeExecutor(stuck=1), start_timeout_s=0.01) as scene:
        (await scene.worker(0)).warm()
        assert scene.owner.states == [FAILING, READY]
        (loss,) = [change.loss for change in scene.owner.changes if change.loss]
        assert loss == Loss("replica_lost", "it did not start within 0.01 s")


async def test_a_start_that_was_given_up_is_heard_of_no_more() -> None:
    async with running(FakeExecutor(stuck=1), start_timeout_s=0.01) as scene:
        second = await scene.worker(0)
        (first,) = scene.executor.abandoned
        first.warm()
        first.lose()
        assert scene.owner.states == [FAILING]
        second.warm()
        assert scene.replica.state is READY


async def test_nobody_hears_a_worker_after_its_loss() -> None:
    async with running(FakeExecutor()) as scene:
        first = await scene.worker(0)
        first.warm()
        first.lose()
        second = await scene.worker(1)
        first.report(JobEnded("a", Outcome.COMPLETED))
        first.warm()
        first.lose()
        assert scene.owner.states == [READY, STARTING]
        assert scene.owner.reports == []
        second.warm()
        assert scene.replica.state is READY


async def test_stopping_in_the_midst_of_a_start_ends_it() -> None:
    async with running(FakeExecutor(stuck=1)) as scene:
        await until(lambda: bool(scene.executor.abandoned))
        await scene.replica.stop(10)
        assert scene.executor.workers == []


async def test_killing_it_replaces_its_worker() -> None:
    async with running(FakeExecutor()) as scene:
        (await scene.worker(0)).warm()
        scene.replica.kill()
        assert (await scene.worker(0)).killed
        await scene.worker(1)


async def test_stopping_asks_its_worker_to_leave_and_starts_no_other() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        worker.warm()
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.replica.stop(10))
            await until(lambda: worker.sent == [Stop()])
            worker.lose("told to stop")
        assert scene.replica.state is STOPPED
        assert not scene.replica.had_to_be_killed
        assert len(scene.executor.workers) == 1


async def test_a_worker_that_does_not_leave_is_killed_and_that_is_remembered() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        worker.warm()
        await scene.replica.stop(0.01)
        assert worker.killed
        assert scene.replica.had_to_be_killed


async def test_a_worker_that_is_not_warm_is_not_asked_but_killed() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        await scene.replica.stop(10)
        assert worker.killed
        assert worker.sent == []
        assert not scene.replica.had_to_be_killed


async def test_stopping_before_anything_was_started_is_no_trouble() -> None:
    scene = Scene(FakeExecutor())
    await scene.replica.stop(10)
    await scene.replica.run()
    assert scene.executor.workers == []


async def test_a_worker_of_a_stage_that_sleeps_is_started_asleep() -> None:
    async with running(FakeExecutor()) as scene:
        first = await scene.worker(0)
        assert not first.spec.asleep
        scene.owner.asleep = True
        first.warm()
        first.lose()
        second = await scene.worker(1)
        assert second.spec.asleep
        second.report(Ready(took_s=0.0, level=2))
        assert scene.owner.changes[-1] == ReplicaChange("stage/0", READY, level=2)


async def test_the_phases_of_a_start_are_timed_and_a_loss_says_in_which_it_came() -> None:
    async with running(FakeExecutor()) as scene:
        worker = await scene.worker(0)
        assert scene.replica.timeline.phase == "spawn"
        worker.report(Begun("import"))
        worker.report(Begun("load"))
        assert scene.owner.reports == []
        worker.lose("no file")
        assert scene.owner.changes[0].phase == "load"
        assert list(scene.replica.timeline.phases) == ["wait", "spawn", "import", "load"]
        (await scene.worker(1)).warm()
        assert scene.owner.changes[1].phase == ""
        assert scene.replica.timeline.phase == ""
