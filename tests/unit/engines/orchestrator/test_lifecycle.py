"""The shell around the life of stages, at an engine whose workers are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from duologue.core.errors import CapacityError, EngineError, ProtocolError
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.lifecycle_port import (
    Order,
    PauseStages,
    ResumeStages,
    SleepStages,
    StageAck,
    WakeStages,
)
from duologue.engines.messages import (
    Cancel,
    JobEnded,
    Open,
    Pause,
    Paused,
    Ready,
    Rested,
    Sleep,
    Wake,
)
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pipeline import Pipeline, StageSpec, stage_keys
from duologue.engines.ports import Outcome, Request
from duologue.engines.settings import EngineSettings
from duologue.telemetry.metrics import LabelSets, Metrics
from tests.fakes.executor import FakeExecutor, FakeWorker
from tests.unit.engines.engine_port_contract import Listener

FENCE = Fence("session", SESSION_LANE, 1)
PIPELINES = {
    "llm": Pipeline(name="llm", stages=(StageSpec(name="llm", runner="script", replicas=2),)),
    "tts": Pipeline(
        name="tts", stages=(StageSpec(name="tts", runner="tone", wake_on_request=True),)
    ),
}


class Scene:
    def __init__(self, engine: Engine, metrics: Metrics, executor: FakeExecutor) -> None:
        self.engine, self.metrics, self.executor = engine, metrics, executor
        self.listener = Listener()

    def worker(self, name: str) -> FakeWorker:
        return [each for each in self.executor.workers if each.spec.name == name][-1]

    def told(self, name: str) -> list[object]:
        return [each for each in self.worker(name).sent if isinstance(each, Sleep | Wake | Pause)]

    def opened(self) -> list[str]:
        """Jobs that some worker has got."""
        sent = [message for worker in self.executor.workers for message in worker.sent]
        return [message.job for message in sent if isinstance(message, Open)]

    def submit(self, request_id: str, pipeline: str = "llm") -> None:
        self.engine.submit(Request(request_id, pipeline, FENCE), self.listener)

    async def order(self, order: Order) -> asyncio.Task[list[StageAck]]:
        """Give an order, and let it begin."""
        task = asyncio.get_running_loop().create_task(self.engine.lifecycle.carry_out(order))
        await asyncio.sleep(0)
        return task

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not done():  # noqa: ASYNC110
                await asyncio.sleep(0)


@asynccontextmanager
async def scene(start_timeout_s: float = 60.0) -> AsyncIterator[Scene]:
    executor = FakeExecutor()
    metrics = Metrics(LabelSets(stages=stage_keys(PIPELINES.values())))
    settings = EngineSettings(
        stop_timeout_s=0.01, start_timeout_s=start_timeout_s, restart_backoff_s=0.001
    )
    engine = Engine(PIPELINES, settings, metrics, executors={"process": executor})
    made = Scene(engine, metrics, executor)
    start = asyncio.get_running_loop().create_task(engine.start())
    await made.until(lambda: len(executor.workers) == 3)
    for worker in executor.workers:
        worker.warm()
    await start
    try:
        yield made
    finally:
        await engine.stop()


LLM = ("llm",)


async def test_every_replica_acknowledges_and_says_what_it_has_freed() -> None:
    async with scene() as made:
        task = await made.order(SleepStages(stage_ids=LLM))
        assert made.told("llm/0") == made.told("llm/1") == [Sleep(2)]
        made.worker("llm/1").report(Rested(2, 7, 70, took_s=0.5))
        made.worker("llm/0").report(Rested(2, 5))
        first, second = await task
        assert (first.rank, first.status, first.level, first.freed_bytes) == (0, "SUCCESS", 2, 5)
        assert (second.device_freed_bytes, second.took_s) == (70, 0.5)
        assert first.task_id == second.task_id
        assert made.metrics.stage_asleep["llm"].value == 2
        assert made.metrics.stage_freed["llm"].value == 82
        assert made.metrics.stage_transitions["llm", "sleep"].value == 1
        (engine,) = await made.engine.lifecycle.look()
        look, other = engine.stages
        assert (look.stage_id, look.number, look.state, look.level) == ("llm", 0, "asleep", 2)
        assert other.state == "awake"
        assert made.engine.lifecycle.resting() == (["llm"], [])


async def test_two_callers_get_one_transition_and_one_that_leaves_leaves_it_alone() -> None:
    async with scene() as made:
        gone = await made.order(SleepStages(stage_ids=LLM))
        first = await made.order(SleepStages(stage_ids=LLM))
        second = await made.order(SleepStages(stage_ids=(0,)))
        gone.cancel()
        for name in ("llm/0", "llm/1"):
            assert made.told(name) == [Sleep(2)]
            made.worker(name).report(Rested(2))
        assert await first == await second


async def test_what_runs_is_aborted_with_a_code_that_says_why() -> None:
    async with scene() as made:
        made.submit("a")
        task = await made.order(SleepStages(stage_ids=LLM, mode="abort"))
        worker = next(each for each in made.executor.workers if Cancel("a") in each.sent)
        assert made.listener.ends("a")[0].code == "stage_asleep"
        assert made.told("llm/0") == []
        worker.report(JobEnded("a", Outcome.CANCELLED))
        assert made.told("llm/0") == [Sleep(2)]
        for name in ("llm/0", "llm/1"):
            made.worker(name).report(Rested(2))
        await task


async def test_what_has_not_ended_in_time_is_aborted() -> None:
    async with scene() as made:
        made.submit("a")
        task = await made.order(PauseStages(stage_ids=LLM, timeout_s=0.001))
        await made.until(lambda: any(Cancel("a") in each.sent for each in made.executor.workers))
        assert made.listener.ends("a")[0].code == "stage_paused"
        for worker in made.executor.workers:
            worker.report(JobEnded("a", Outcome.CANCELLED))
        assert {ack.status for ack in await task} == {"SUCCESS"}


async def test_a_pause_holds_work_until_the_stage_resumes() -> None:
    async with scene() as made:
        (ack, _) = await made.engine.lifecycle.pause(PauseStages(stage_ids=LLM))
        assert ack.status == "SUCCESS"
        made.submit("a")
        assert made.opened() == []
        assert made.engine.lifecycle.resting() == ([], ["llm"])
        await made.engine.lifecycle.resume(ResumeStages(stage_ids=LLM))
        assert made.opened() == ["a"]
        assert {each.status for each in await made.engine.lifecycle.resume()} == {"SKIPPED"}


async def test_a_pause_may_keep_what_runs_until_the_stage_resumes() -> None:
    async with scene() as made:
        made.submit("a")
        lifecycle = made.engine.lifecycle
        task = await made.order(PauseStages(stage_ids=LLM, mode="keep", timeout_s=0.0))
        for name in ("llm/0", "llm/1"):
            assert made.told(name) == [Pause(on=True)]
            made.worker(name).report(Paused())
        assert {ack.status for ack in await task} == {"SUCCESS"}
        (engine,) = await lifecycle.look()
        look = engine.stages[0]
        assert (look.state, look.kept, look.running) == ("paused", True, 1)
        asleep = await lifecycle.sleep(SleepStages(stage_ids=LLM))
        assert {ack.code for ack in asleep} == {"stage_in_transition"}
        await lifecycle.resume(ResumeStages(stage_ids=LLM))
        assert made.told("llm/0") == made.told("llm/1") == [Pause(on=True), Pause(on=False)]
        worker = next(each for each in made.executor.workers if Open("a") in each.sent)
        worker.report(JobEnded("a", Outcome.COMPLETED))
        assert [end.outcome for end in made.listener.ends("a")] == [Outcome.COMPLETED]


async def test_a_worker_that_does_not_hold_its_work_is_killed_and_named() -> None:
    async with scene(start_timeout_s=0.05) as made:
        acks = await made.engine.lifecycle.pause(PauseStages(stage_ids=LLM, mode="keep"))
        assert {ack.code for ack in acks} == {"stage_timeout"}


async def test_a_request_wakes_a_stage_that_says_so_and_others_refuse_it() -> None:
    async with scene() as made:
        task = await made.order(SleepStages())
        for worker in made.executor.workers:
            worker.report(Rested(2))
        await task
        with pytest.raises(CapacityError) as refused:
            made.submit("a", "llm")
        assert (refused.value.code, refused.value.retry_after_s) == ("stage_asleep", 30.0)
        assert made.metrics.stage_refused["llm"].value == 1
        made.submit("b", "tts")
        assert made.told("tts/0") == [Sleep(2), Wake()]
        made.worker("tts/0").report(Rested(0))
        assert made.opened() == ["b"]


async def test_who_waits_for_a_wake_that_fails_is_told() -> None:
    async with scene() as made:
        task = await made.order(SleepStages(stage_ids=("tts",)))
        made.worker("tts/0").report(Rested(2))
        await task
        made.submit("b", "tts")
        made.worker("tts/0").report(Rested(2, code="out_of_memory", message="no memory"))
        assert made.listener.ends("b")[0].code == "stage_asleep"
        (engine,) = await made.engine.lifecycle.look()
        (_, look) = engine.stages
        assert (look.state, look.failed, look.error) == ("asleep", "wake", "no memory")
        assert made.metrics.stage_transitions["tts", "wake_failed"].value == 1


async def test_a_replica_that_dies_on_its_way_to_sleep_comes_back_asleep() -> None:
    async with scene() as made:
        task = await made.order(SleepStages(stage_ids=LLM))
        made.worker("llm/1").report(Rested(2))
        made.worker("llm/0").lose()
        await made.until(lambda: len(made.executor.workers) == 4)
        assert made.worker("llm/0").spec.asleep
        made.worker("llm/0").report(Ready(took_s=0.0, level=2))
        first, _ = await task
        assert (first.status, first.restarted, first.level) == ("SUCCESS", True, 2)


async def test_a_worker_that_does_not_answer_is_killed_and_named() -> None:
    async with scene(start_timeout_s=0.05) as made:
        task = await made.order(SleepStages(stage_ids=("tts",)))
        (ack,) = await task
        assert (ack.status, ack.code) == ("ERROR", "stage_timeout")
        assert ack.message.startswith("stage tts: ")
        assert made.executor.workers[2].killed


async def test_a_stage_that_is_not_there_is_refused_before_anything_is_done() -> None:
    async with scene() as made:
        for name in ("asr", 2, -1):
            with pytest.raises(ProtocolError, match="there are llm, tts") as refused:
                await made.engine.lifecycle.sleep(SleepStages(stage_ids=("tts", name)))
            assert refused.value.code == "stage_not_found"
        assert made.told("tts/0") == []


async def test_an_engine_that_stops_keeps_nobody_waiting() -> None:
    async with scene() as made:
        task = await made.order(SleepStages(stage_ids=LLM))
        await made.engine.stop()
        with pytest.raises(EngineError, match="stops"):
            await task


async def test_waking_what_is_awake_is_skipped() -> None:
    async with scene() as made:
        acks = await made.engine.lifecycle.wake(WakeStages())
        assert [ack.status for ack in acks] == ["SKIPPED"] * 3
        assert made.metrics.stage_transitions["llm", "wake"].value == 0


async def test_an_order_for_all_skips_who_cannot_sleep_and_one_by_name_does_not() -> None:
    async with scene() as made:
        for stage_ids, status in ((None, "SKIPPED"), (("tts",), "ERROR")):
            task = await made.order(SleepStages(stage_ids=stage_ids))
            for worker in made.executor.workers:
                worker.report(Rested(0, code="sleep_unsupported", message="it cannot"))
            ack = (await task)[-1]
            assert (ack.stage_id, ack.status, ack.code) == ("tts", status, "sleep_unsupported")
            assert ack.message == "stage tts: it cannot"


async def test_a_look_says_how_the_workers_started() -> None:
    async with scene() as made:
        (engine,) = await made.engine.lifecycle.look()
        assert sorted(each.worker for each in engine.start.workers) == ["llm/0", "llm/1", "tts/0"]
        assert list(engine.stages[0].replicas[0].phases) == ["wait", "spawn"]
