"""A stage pool whose workers are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from duologue.core.errors import EngineError
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.messages import JobEnded, JobReport, Open
from duologue.engines.pipeline import StageSpec
from duologue.engines.pools.replica import ReplicaChange
from duologue.engines.pools.stage_life import Effect
from duologue.engines.pools.stage_pool import StagePool
from duologue.engines.settings import EngineSettings
from tests.fakes.clock import FakeClock
from tests.fakes.executor import FakeExecutor, FakeWorker


class Observer:
    """Keeps what a pool says."""

    def __init__(self) -> None:
        self.reports: list[JobReport] = []
        self.overflows: list[tuple[str, EngineError]] = []
        self.steps: list[float] = []
        self.waits: list[float] = []
        self.changes: list[ReplicaChange] = []
        self.effects: list[Effect] = []
        self.counted: list[tuple[str, FrameCounts]] = []

    def on_life(self, stage: str, effects: Sequence[Effect]) -> None:
        assert stage == "llm"
        self.effects += effects

    def on_job_report(self, stage: str, report: JobReport) -> None:
        assert stage == "llm"
        self.reports.append(report)

    def on_overflow(self, stage: str, job: str, error: EngineError) -> None:
        assert stage == "llm"
        self.overflows.append((job, error))

    def on_step(self, stage: str, duration_s: float) -> None:
        self.steps.append(duration_s)

    def on_placed(self, stage: str, waited_s: float) -> None:
        self.waits.append(waited_s)

    def on_counted(self, worker: str, counts: FrameCounts) -> None:
        self.counted.append((worker, counts))

    def on_replica_change(self, stage: str, change: ReplicaChange) -> None:
        assert stage == "llm"
        self.changes.append(change)


class Scene:
    """A pool whose workers are played by the test."""

    def __init__(self, **spec: object) -> None:
        self.executor = FakeExecutor()
        self.observer = Observer()
        self.clock = FakeClock()
        self.spec = StageSpec(name="llm", runner="script", **spec)
        # Restarts are for the replica's own tests: here a lost worker stays away.
        settings = EngineSettings(restart_backoff_s=1000)
        self.pool = StagePool("llm", self.spec, self.executor, self.observer, settings, self.clock)

    @property
    def workers(self) -> list[FakeWorker]:
        return self.executor.workers

    def open(self, *jobs: str) -> None:
        for job in jobs:
            self.pool.check_room()
            self.pool.open(Open(job))

    def placed(self, number: int = 0) -> list[str]:
        sent = self.workers[number].sent
        return [message.job for message in sent if isinstance(message, Open)]

    def ended(self) -> list[JobEnded]:
        return [report for report in self.observer.reports if isinstance(report, JobEnded)]


@asynccontextmanager
async def scene(*, warm: bool = True, **spec: object) -> AsyncIterator[Scene]:
    made = Scene(**spec)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replica.run()) for replica in made.pool.replicas]
        await asyncio.sleep(0)
        assert len(made.workers) == made.spec.replicas
        if warm:
            for worker in made.workers:
                worker.warm()
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()
