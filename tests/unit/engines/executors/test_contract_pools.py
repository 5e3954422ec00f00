"""What holds for a stage on every executor: slots, restarts, and an end within a bound."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from duologue.core.errors import CapacityError, EngineError
from duologue.core.fence import Fence, Lane
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, Outcome, Request
from duologue.engines.settings import EngineSettings
from tests.fakes.marked import Marked
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import Listener
from tests.unit.engines.executors.kinds import KINDS

FENCE = Fence("session", Lane("response_1"), 0)
SETTINGS = EngineSettings(restart_backoff_s=0.01, cancel_grace_s=0.2, stop_timeout_s=1)


class Caller:
    """Somebody who asks one stage."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.listener = Listener()

    def ask(self, request_id: str, text: str, credit: int | None = None) -> None:
        request = Request(request_id, "llm", FENCE, first=TextDelta(text), credit=credit)
        self.engine.submit(request, self.listener)

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                self.listener.news.clear()
                await self.listener.news.wait()

    async def begun(self, *request_ids: str) -> None:
        await self.until(lambda: all(self.listener.outputs(each) for each in request_ids))

    async def end_of(self, request_id: str) -> Ended:
        await self.until(lambda: bool(self.listener.ends(request_id)))
        (ended,) = self.listener.ends(request_id)
        return ended

    async def is_answered(self, request_id: str, text: str) -> None:
        self.ask(request_id, text)
        assert (await self.end_of(request_id)).outcome is Outcome.COMPLETED
        assert self.listener.text(request_id) == text


@asynccontextmanager
async def stage_on(kind: str, marked: Marked, **fields: object) -> AsyncIterator[Caller]:
    """One stage, and at the end no process of it."""
    stage = StageSpec(name="llm", runner="script", executor=kind, env=marked.env, **fields)
    pipelines = {"llm": Pipeline(name="llm", stages=(stage,))}
    engine = Engine(pipelines, SETTINGS, executors={kind: KINDS[kind].make()})
    try:
        await engine.start()
        yield Caller(engine)
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await engine.stop()
        await marked.gone()


async def test_a_stage_holds_as_many_jobs_as_it_has_slots_and_queues_the_next(kind: str) -> None:
    async with stage_on(kind, Marked(), max_jobs=2, queue=1) as caller:
        for request_id in ("a", "b"):
            caller.ask(request_id, "one two", credit=1)
        await caller.begun("a", "b")
        caller.ask("c", "one two")
        stats = caller.engine.stats().stages[0]
        assert (stats.busy, stats.queued, stats.slots) == (2, 1, 2)
        with pytest.raises(CapacityError, match="2 of 2 slots"):
            caller.ask("d", "one two")
        caller.engine.grant("a", 10)
        assert (await caller.end_of("c")).outcome is Outcome.COMPLETED
        caller.engine.cancel("b")
        assert (await caller.end_of("b")).outcome is Outcome.CANCELLED


async def test_a_killed_worker_fails_its_jobs_others_go_on_and_the_pool_heals(
    process_kind: str,
) -> None:
    marked = Marked()
    async with stage_on(process_kind, marked, replicas=2, max_jobs=1) as caller:
        for request_id in ("a", "b"):
            caller.ask(request_id, "one two three", credit=1)
        await caller.begun("a", "b")
        caller.ask("queued", "my turn")
        victim = min(marked.environments())
        os.kill(victim, signal.SIGKILL)
        await caller.until(lambda: bool(caller.listener.ends("a") or caller.listener.ends("b")))
        lost, kept = ("a", "b") if caller.listener.ends("a") else ("b", "a")
        ended = await caller.end_of(lost)
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "replica_lost")
        assert f"status {-signal.SIGKILL}" in ended.message
        assert (await caller.end_of("queued")).outcome is Outcome.COMPLETED
        caller.engine.grant(kept, 10)
        assert (await caller.end_of(kept)).outcome is Outcome.COMPLETED
        stats = caller.engine.stats().stages[0]
        assert (stats.ready, stats.restarts, stats.busy) == (2, 1, 0)
        assert len(marked.environments()) == 2
        assert victim not in marked.environments()


async def test_a_worker_that_dies_again_and_again_is_started_each_time(process_kind: str) -> None:
    marked = Marked()
    async with stage_on(process_kind, marked) as caller:
        for number in range(3):
            caller.ask(f"lost{number}", "one two", credit=1)
            await caller.begun(f"lost{number}")
            os.kill(marked.pid(), signal.SIGKILL)
            assert (await caller.end_of(f"lost{number}")).code == "replica_lost"
            await caller.is_answered(f"kept{number}", "one two")
        assert caller.engine.stats().stages[0].restarts == 3


async def test_one_that_hangs_is_replaced_after_the_grace(kind: str) -> None:
    hangs = {"fault": {"kind": "hang", "when_text": "slow"}}
    async with stage_on(kind, Marked(), settings=hangs) as caller:
        caller.ask("a", "slow")
        caller.engine.cancel("a")
        assert (await caller.end_of("a")).outcome is Outcome.CANCELLED
        await caller.is_answered("b", "fine")


async def test_a_stage_whose_worker_hangs_stops_within_the_bound(kind: str) -> None:
    async with stage_on(kind, Marked(), settings={"fault": {"kind": "hang"}}) as caller:
        caller.ask("a", "slow")
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_stage_that_cannot_start_says_why_and_leaves_nothing(kind: str) -> None:
    with pytest.raises(EngineError, match=r"llm/0 died: .*delay_stops"):
        async with stage_on(kind, Marked(), settings={"delay_stops": 1}):
            pass
