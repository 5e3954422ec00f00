"""A request of one answer, whose worker is killed at any moment: it is answered, or it fails.

Nothing may be lost between a queue, a slot, a worker and its successor. Whoever waits for longer
than ``DEADLINE_S`` is told by the engine's own watch that nothing came, and that is a failure here.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import CapacityError, EngineError
from duologue.core.ids import id_maker
from duologue.engines.executors.base import Worker, WorkerListener
from duologue.engines.executors.inline import InlineExecutor
from duologue.engines.messages import WorkerSpec
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.settings import EngineSettings
from duologue.gateway.route_requests import RouteRequests
from tests.faults.test_worker_faults import children

DEADLINE_S = 60.0
CALLERS = 8
LINE = "one two three four five"
SETTINGS = EngineSettings(restart_backoff_s=0.0005, restart_backoff_max_s=0.001)


def a_stage(name: str, runner: str = "script", **more: object) -> StageSpec:
    return StageSpec(name=name, runner=runner, max_jobs=3, queue=4, **more)  # type: ignore[arg-type]


WRITTEN = Pipeline(name="written", stages=(a_stage("written", replicas=2),))
SPOKEN = Pipeline(name="spoken", stages=(a_stage("words", credit=2), a_stage("tones", "tone")))
CREDITS = {"written": 2, "spoken": 200}


class KillableThreads:
    """An executor of threads; those that run may be killed by the name of their worker."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self._threads = InlineExecutor()

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> Worker:
        worker = self.workers[spec.name] = await self._threads.start(spec, listener)
        return worker

    async def close(self) -> None:
        pass


class Callers:
    """They ask and ask again; each must be told how it ended."""

    def __init__(self, engine: Engine, dice: random.Random) -> None:
        self.ends: Counter[str] = Counter()
        self.engine = engine
        self._dice = dice
        self._requests = RouteRequests(
            engine, SystemClock(), id_maker(), 2 * DEADLINE_S, DEADLINE_S
        )

    async def ask(self, pipeline: str) -> str:
        """Ask once; returns how it ended."""
        leaves = self._dice.random() < 0.1
        count = 0
        try:
            with self._requests.request(
                pipeline, TextDelta(LINE), credit=CREDITS[pipeline]
            ) as outputs:
                async for _ in outputs:
                    count += 1
                    if leaves:
                        return "left"
        except CapacityError:
            await asyncio.sleep(0.001)
            return "refused"
        except EngineError as exc:
            await asyncio.sleep(0.001)
            return exc.code
        assert count, "an answer without a word"
        return "completed"

    async def ask_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            self.ends[await self.ask(self._dice.choice(list(CREDITS)))] += 1

    async def is_whole(self) -> None:
        """Each pipeline answers again, and holds nothing of what went before."""
        for pipeline in CREDITS:
            async with asyncio.timeout(DEADLINE_S):
                while (end := await self.ask(pipeline)) != "completed":
                    assert end in ("left", "refused", "replica_lost"), end
        stats = self.engine.stats()
        assert [(each.busy, each.queued) for each in stats.stages] == [(0, 0)] * 3
        assert stats.requests == 0


@asynccontextmanager
async def an_engine(executor: KillableThreads | None = None) -> AsyncIterator[Engine]:
    pipelines = {each.name: each for each in (WRITTEN, SPOKEN)}
    executors = None if executor is None else {"process": executor}
    engine = Engine(pipelines, SETTINGS, executors=executors)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def all_are_told(
    callers: Callers, kill: Callable[[], None], kills: int, pause: Callable[[], float]
) -> None:
    """Let everybody ask while workers are killed, so many times."""
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(callers.ask_until(over))
        for _ in range(kills):
            await asyncio.sleep(pause())
            kill()
        over.set()
    await callers.is_whole()
    assert set(callers.ends) <= {"completed", "left", "refused", "replica_lost"}, callers.ends
    assert callers.ends["completed"] > CALLERS
    assert callers.ends["replica_lost"]


@pytest.mark.parametrize("seed", range(3))
async def test_nobody_waits_for_ever_whenever_a_worker_is_killed(seed: int) -> None:
    """Thousands of requests, hundreds of kills, each between any two turns of the loop."""
    dice = random.Random(seed)
    threads = KillableThreads()

    def kill() -> None:
        threads.workers[dice.choice(list(threads.workers))].kill()

    async with an_engine(threads) as engine:
        await all_are_told(
            Callers(engine, dice), kill, 200, lambda: dice.choice((0, 0.001, 0.003, 0.01))
        )


async def test_nobody_waits_for_ever_whenever_a_process_is_killed() -> None:
    """The same with processes, which also die while they are being started."""
    dice = random.Random(5)
    before = children()

    def kill() -> None:
        workers = [pid for pid in children() if pid not in before]
        if workers:
            os.kill(dice.choice(workers), signal.SIGKILL)

    async with an_engine() as engine:
        await all_are_told(Callers(engine, dice), kill, 16, lambda: dice.choice((0.02, 0.3, 1.5)))
