"""An engine whose workers are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.edges import EDGES, Edge
from duologue.engines.messages import FromWorker, JobEnded
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pipeline import Pipeline, StageSpec, stage_keys
from duologue.engines.ports import Outcome, Request
from duologue.engines.settings import EngineSettings
from duologue.telemetry.metrics import LabelSets, Metrics
from tests.fakes.clock import FakeClock
from tests.fakes.executor import FakeExecutor, FakeWorker
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import Listener

FENCE = Fence("session", SESSION_LANE, 1)
GRACE_S = 0.01
COMPLETED, CANCELLED, FAILED = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED

PIPELINES = {
    "llm": Pipeline(name="llm", stages=(StageSpec(name="llm", runner="script", max_jobs=2),)),
    "speech": Pipeline(
        name="speech",
        stages=(
            StageSpec(name="words", runner="script", credit=1, max_jobs=4, deadline_ms=20),
            StageSpec(name="tones", runner="tone", queue=0),
        ),
    ),
}


def request(request_id: str, pipeline: str = "llm", **fields: object) -> Request:
    return Request(request_id, pipeline, FENCE, **fields)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0)


class Scene:
    """An engine whose workers are played by the test."""

    def __init__(
        self,
        pipelines: dict[str, Pipeline],
        clock: FakeClock,
        executor: FakeExecutor,
        edges: dict[str, Edge] | None = None,
    ) -> None:
        self.clock = clock
        self.stages = stage_keys(pipelines.values())
        self.metrics = Metrics(LabelSets(stages=self.stages))
        self.listener = Listener()
        self._executor = executor
        settings = EngineSettings(
            stop_timeout_s=0.01,
            cancel_grace_s=GRACE_S,
            restart_backoff_s=1000,
            start_timeout_s=1000,
        )
        self.engine = Engine(
            pipelines,
            settings,
            self.metrics,
            clock,
            executors={"process": executor},
            edges={**EDGES, **(edges or {})},
        )

    def worker(self, stage: str) -> FakeWorker:
        """The latest worker of a stage's first replica."""
        return [each for each in self._executor.workers if each.spec.name == f"{stage}/0"][-1]

    def submit(self, request_id: str, pipeline: str = "llm", **fields: object) -> None:
        self.engine.submit(request(request_id, pipeline, **fields), self.listener)

    def say(self, stage: str, *messages: FromWorker) -> None:
        self.worker(stage).report(*messages)

    def end(self, stage: str, job: str, outcome: Outcome = COMPLETED) -> None:
        self.say(stage, JobEnded(job, outcome))

    def sent(self, stage: str) -> Sequence[object]:
        return self.worker(stage).sent


@asynccontextmanager
async def scene(edges: dict[str, Edge] | None = None) -> AsyncIterator[Scene]:
    executor = FakeExecutor()
    here = Scene(PIPELINES, FakeClock(), executor, edges)
    async with asyncio.TaskGroup() as group:
        started = group.create_task(here.engine.start())
        await until(lambda: len(executor.workers) == len(here.stages))
        for worker in executor.workers:
            worker.warm()
        await started
    try:
        yield here
    finally:
        await here.engine.stop()
