"""What a worker may do wrong, and what must go on all the same."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duologue.core.clock import SystemClock
from duologue.core.fence import Fence, Lane
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, Outcome, Request
from duologue.engines.settings import EngineSettings
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import Listener

FENCE = Fence("session", Lane("response_1"), 0)
IMPATIENT = EngineSettings(restart_backoff_s=0.01, cancel_grace_s=0.2)
PATIENT = EngineSettings(restart_backoff_s=0.01)
HANGS_S = 1.0
"""By then a worker has begun the step in which it hangs; one that has not is only cancelled."""


def words(kind: str = "process", **settings: object) -> Pipeline:
    stage = StageSpec(name="llm", runner="script", executor=kind, max_jobs=4, settings=settings)
    return Pipeline(name="llm", stages=(stage,))


def speech(fault: dict[str, object]) -> Pipeline:
    """Words of a worker that does something wrong, tones of one that does not."""
    first = StageSpec(
        name="words",
        runner="script",
        executor="process",
        max_jobs=4,
        credit=4,
        settings={"fault": fault},
    )
    second = StageSpec(name="tones", runner="tone", executor="inline", max_jobs=4)
    return Pipeline(name="llm", stages=(first, second))


class Call:
    """One caller of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.listener = Listener()

    def ask(self, request_id: str, text: str, **fields: object) -> None:
        request = Request(request_id, "llm", FENCE, first=TextDelta(text), **fields)
        self.engine.submit(request, self.listener)

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                self.listener.news.clear()
                await self.listener.news.wait()

    async def end_of(self, request_id: str) -> Ended:
        await self.until(lambda: bool(self.listener.ends(request_id)))
        (ended,) = self.listener.ends(request_id)
        return ended

    async def answers(self, request_id: str, text: str) -> None:
        """Check that a request is answered well."""
        self.ask(request_id, text)
        assert (await self.end_of(request_id)).outcome is Outcome.COMPLETED
        assert self.listener.text(request_id) == text


@asynccontextmanager
async def engine_with(
    pipeline: Pipeline, settings: EngineSettings = PATIENT
) -> AsyncIterator[Call]:
    before = children()
    engine = Engine({"llm": pipeline}, settings)
    await engine.start()
    try:
        yield Call(engine)
    finally:
        await engine.stop()
    assert children() == before, "no process is left behind"


def children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in listed.split()]


def kill_worker() -> None:
    (pid,) = children()
    os.kill(pid, signal.SIGKILL)


async def test_a_caller_that_floods_loses_its_own_request_and_no_other() -> None:
    stage = StageSpec(name="llm", runner="energy_vad", max_jobs=4, settings={"window_ms": 40})
    async with engine_with(Pipeline(name="llm", stages=(stage,))) as call:
        engine, listener = call.engine, call.listener
        for request_id in ("flood", "calm"):
            engine.submit(Request(request_id, "llm", FENCE, more_input=True), listener)
        for number in range(40):
            engine.append("flood", AudioChunk(bytes(2**20), 16_000, number * 2**19))
        engine.append("calm", AudioChunk(bytes(1280), 16_000))
        ended = await call.end_of("flood")
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "rate_limited")
        await call.until(lambda: bool(listener.outputs("calm")))
        engine.finish_input("calm")
        assert (await call.end_of("calm")).outcome is Outcome.COMPLETED
        assert engine.stats().stages[0].restarts == 0


async def test_a_worker_killed_in_the_midst_fails_its_requests_and_the_next_is_answered() -> None:
    async with engine_with(words()) as call:
        call.ask("a", "one two three", credit=1)
        call.ask("b", "one two three", credit=1)
        await call.until(lambda: bool(call.listener.outputs("a") and call.listener.outputs("b")))
        kill_worker()
        for request_id in ("a", "b"):
            ended = await call.end_of(request_id)
            assert (ended.outcome, ended.code) == (Outcome.FAILED, "replica_lost")
            assert "-9" in ended.message
        await call.answers("c", "good morning")
        (stage,) = call.engine.stats().stages
        assert (stage.restarts, stage.busy) == (1, 0)


async def test_what_is_appended_to_a_stream_whose_worker_was_just_lost_goes_nowhere() -> None:
    async with engine_with(words()) as call:
        request = Request("a", "llm", FENCE, first=TextDelta("one"), more_input=True)
        call.engine.submit(request, call.listener)
        await call.until(lambda: bool(call.listener.outputs("a")))
        kill_worker()
        while not call.listener.ends("a"):
            call.engine.append("a", TextDelta("lost"))
            await asyncio.sleep(0)
        for _ in range(3):
            call.engine.append("a", TextDelta("too late"))
        call.engine.finish_input("a")
        call.engine.cancel("a")
        assert (await call.end_of("a")).code == "replica_lost"
        await call.answers("b", "good morning")
        assert call.listener.text("a") == "one"
        stats = call.engine.stats()
        assert (stats.requests, stats.stages[0].busy, stats.stages[0].queued) == (0, 0, 0)


async def test_a_request_made_while_the_worker_restarts_is_answered() -> None:
    async with engine_with(words()) as call:
        call.ask("a", "one two", credit=1)
        await call.until(lambda: bool(call.listener.outputs("a")))
        kill_worker()
        await call.end_of("a")
        assert call.engine.stats().stages[0].ready == 0
        await call.answers("b", "still here")
        assert call.engine.stats().stages[0].ready == 1


async def test_a_worker_that_dies_again_and_again_is_restarted_each_time() -> None:
    async with engine_with(words()) as call:
        for number in range(3):
            call.ask(f"lost{number}", "one two", credit=1)
            await call.until(lambda: bool(call.listener.events))
            kill_worker()
            assert (await call.end_of(f"lost{number}")).code == "replica_lost"
            await call.answers(f"kept{number}", "one two")
        assert call.engine.stats().stages[0].restarts == 3


async def test_a_runner_that_raises_fails_one_request_and_no_other() -> None:
    async with engine_with(words(fault={"kind": "raise", "when_text": "bad"})) as call:
        call.ask("good", "one two three", credit=1)
        call.ask("bad", "bad words")
        ended = await call.end_of("bad")
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_failed")
        call.engine.grant("good", 10)
        assert (await call.end_of("good")).outcome is Outcome.COMPLETED
        assert call.engine.stats().stages[0].restarts == 0


async def test_a_runner_that_crashes_is_replaced() -> None:
    async with engine_with(words(fault={"kind": "crash", "when_text": "bad"})) as call:
        call.ask("a", "a bad one")
        ended = await call.end_of("a")
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "replica_lost")
        assert "worker_crashed: RuntimeError at scripted.py:" in ended.message
        await call.answers("b", "fine")


async def test_a_runner_that_hangs_fails_at_the_deadline_and_is_replaced_after_the_grace() -> None:
    async with engine_with(words(fault={"kind": "hang", "when_text": "slow"}), IMPATIENT) as call:
        (pid,) = children()
        call.ask("a", "slow", deadline_s=SystemClock().now() + HANGS_S)
        ended = await call.end_of("a")
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_timeout")
        assert children() == [pid], "it still has its grace"
        await call.answers("b", "fine")
        assert pid not in children()


async def test_a_request_that_shares_a_hanging_worker_is_told_that_it_was_lost() -> None:
    async with engine_with(words(fault={"kind": "hang", "when_text": "slow"}), IMPATIENT) as call:
        call.ask("b", "one two", credit=1)
        await call.until(lambda: bool(call.listener.outputs("b")))
        call.ask("a", "slow", deadline_s=SystemClock().now() + HANGS_S)
        assert (await call.end_of("b")).code == "replica_lost"


async def test_a_cancel_of_a_request_that_hangs_is_acknowledged_by_the_end_of_its_worker() -> None:
    async with engine_with(words(fault={"kind": "hang", "when_text": "slow"}), IMPATIENT) as call:
        call.ask("a", "slow")
        call.engine.cancel("a")
        assert (await call.end_of("a")).outcome is Outcome.CANCELLED
        await call.answers("b", "fine")


async def test_an_abandoned_thread_is_replaced_too() -> None:
    hanging = words("inline", fault={"kind": "hang", "when_text": "slow"})
    async with engine_with(hanging, IMPATIENT) as call:
        call.ask("a", "slow", deadline_s=SystemClock().now() + HANGS_S)
        assert (await call.end_of("a")).code == "stage_timeout"
        await call.answers("b", "fine")


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ({"kind": "late", "at_chunk": 1, "steps": 5}, "one two three"),
        ({"kind": "twice", "at_chunk": 1}, "one two two three"),
        ({"kind": "short", "at_chunk": 2}, "one two"),
    ],
)
async def test_outputs_that_are_late_doubled_or_missing_still_end_once(
    fault: dict[str, object], text: str
) -> None:
    async with engine_with(words(fault=fault)) as call:
        call.ask("a", "one two three")
        assert (await call.end_of("a")).outcome is Outcome.COMPLETED
        assert call.listener.text("a") == text
        assert isinstance(call.listener.events[-1], Ended)


async def test_outputs_that_are_late_after_a_cancel_reach_nobody() -> None:
    fault = {"kind": "late", "at_chunk": 1, "steps": 5}
    async with engine_with(words(fault=fault)) as call:
        call.ask("a", "one two three", credit=1)
        await call.until(lambda: bool(call.listener.outputs("a")))
        call.engine.grant("a", 10)
        call.engine.cancel("a")
        await call.end_of("a")
        await call.answers("b", "one")
        assert isinstance(call.listener.of("a")[-1], Ended)


@pytest.mark.parametrize("kind", ["raise", "crash"])
async def test_a_fault_of_the_first_stage_fails_the_request_and_frees_the_second(
    kind: str,
) -> None:
    async with engine_with(speech({"kind": kind, "at_chunk": 2, "when_text": "bad"})) as call:
        call.ask("a", "some bad words here", credit=100_000)
        assert (await call.end_of("a")).outcome is Outcome.FAILED
        call.ask("b", "good words", credit=100_000)
        assert (await call.end_of("b")).outcome is Outcome.COMPLETED
        stats = call.engine.stats()
        assert [stage.busy for stage in stats.stages] == [0, 0]
        assert stats.requests == 0


async def test_hundreds_of_requests_cancelled_at_any_moment_leave_nothing_behind() -> None:
    async with engine_with(speech({"kind": "raise", "at_chunk": 7, "when_text": "bad"})) as call:
        for number in range(0, 300, 4):
            batch = [f"r{number + offset}" for offset in range(4)]
            for request_id in batch:
                text = "bad words " if number % 3 == 0 else "good words "
                call.ask(request_id, text * 5, credit=500 if number % 2 else 100_000)
            for _ in range(number % 7):
                await asyncio.sleep(0)
            for request_id in batch[: 1 + number % 4]:
                call.engine.cancel(request_id)
            for request_id in batch:
                call.engine.grant(request_id, 100_000)
                await call.end_of(request_id)
        # Both stages have acknowledged everything before they answer this.
        call.ask("last", "one word", credit=100_000)
        await call.end_of("last")
        stats = call.engine.stats()
        assert stats.requests == 0
        assert [(stage.busy, stage.queued, stage.restarts) for stage in stats.stages] == [
            (0, 0, 0)
        ] * 2
        ends = [event for event in call.listener.events if isinstance(event, Ended)]
        assert len(ends) == len({end.request_id for end in ends}) == 301
