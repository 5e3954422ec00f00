"""What every executor promises, wherever its workers run: see ``kinds.KINDS``."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import deque

import pytest

from duologue.engines.executors import EXECUTORS
from duologue.engines.executors.base import Executor
from duologue.engines.messages import (
    Append,
    Cancel,
    Finish,
    Grant,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Pause,
    Paused,
    Ready,
    Rested,
    Sleep,
    Wake,
    WorkerSpec,
)
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, TextDelta
from duologue.engines.ports import Outcome
from duologue.engines.runners.contract import Job
from duologue.engines.runners.scripted import ToneRunner, ToneSettings
from tests.patience import PATIENCE_S, until
from tests.unit.engines.executors.kinds import KINDS, Ear, open_files, shared_memory, spec, stop


def made_here(clause: SpeakText) -> list[Payload]:
    """What ``tone`` makes of a clause, without anything in between."""
    runner = ToneRunner(ToneSettings())
    job = Job(id="here", inputs=deque([clause]), input_ended=True)
    runner.open(job)
    outputs: list[Payload] = []
    while runner.ready(job):
        outputs += runner.step([job])[0].outputs
    return outputs


def test_every_executor_makes_its_promises_here() -> None:
    assert EXECUTORS.keys() <= KINDS.keys()


async def test_a_worker_becomes_ready_works_and_leaves_when_told(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("one two three")))
    await ear.until(lambda: len(ear.of("a")) == 4)
    assert ear.text("a") == "one two three"
    assert ear.of("a")[-1] == JobEnded("a", Outcome.COMPLETED)
    await stop(worker, ear)
    assert len(ear.losses) == 1


async def test_several_workers_work_side_by_side(executor: Executor) -> None:
    ears = [Ear() for _ in range(3)]
    started = [executor.start(spec(name=f"stage/{n}"), ear) for n, ear in enumerate(ears)]
    workers = await asyncio.gather(*started)
    for number, (worker, ear) in enumerate(zip(workers, ears, strict=True)):
        await ear.ready()
        worker.send(Open("a", TextDelta(f"number {number}")))
    for number, (worker, ear) in enumerate(zip(workers, ears, strict=True)):
        await ear.ended("a")
        assert ear.text("a") == f"number {number}"
        await stop(worker, ear)


async def test_messages_arrive_in_order(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", input_ended=False))
    for number in range(200):
        worker.send(Append("a", TextDelta(f"{number}.")))
    worker.send(Finish("a"))
    await ear.ended("a")
    assert ear.text("a") == "".join(f"{number}." for number in range(200))
    await stop(worker, ear)


async def test_messages_of_later_turns_of_the_loop_arrive_as_well(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", input_ended=False))
    for number in range(3):
        worker.send(Append("a", TextDelta(str(number))))
        await ear.until(lambda count=number: len(ear.of("a")) == count + 1)
    await stop(worker, ear)
    assert ear.text("a") == "012"


async def test_bytes_are_not_changed_on_the_way(executor: Executor) -> None:
    ear = Ear()
    clause = SpeakText("a clause to speak", text_end=17)
    worker = await executor.start(spec("tone"), ear)
    await ear.ready()
    worker.send(Open("a", clause))
    await ear.ended("a")
    await stop(worker, ear)
    heard = [each.payload for each in ear.of("a") if isinstance(each, JobOutput)]
    assert heard == made_here(clause)


async def test_a_lot_of_input_is_taken_and_told_of(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec("energy_vad", settings={"window_ms": 40}), ear)
    await ear.ready()
    worker.send(Open("a", input_ended=False))
    for number in range(24):
        worker.send(Append("a", AudioChunk(bytes(2**20), 16_000, number * 2**19)))
    worker.send(Finish("a"))
    worker.send(Open("b", AudioChunk(bytes(32_000), 16_000)))
    for job in ("a", "b"):
        await ear.ended(job)
        assert ear.of(job)[-1] == JobEnded(job, Outcome.COMPLETED)
    taken = [each for each in ear.messages if isinstance(each, JobTaken) and each.job == "a"]
    assert sum(each.count for each in taken) == 24
    await stop(worker, ear)


async def test_a_cancel_is_acknowledged_while_other_jobs_go_on(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("word " * 1000), credit=1))
    worker.send(Open("b", TextDelta("one two"), credit=1))
    await ear.until(lambda: bool(ear.of("a")) and bool(ear.of("b")))
    worker.send(Cancel("a"))
    worker.send(Grant("b", 1))
    await ear.ended("b")
    assert ear.of("a") == [JobOutput("a", TextDelta("word")), JobEnded("a", Outcome.CANCELLED)]
    assert ear.text("b") == "one two"
    await stop(worker, ear)


async def test_stopping_ends_the_jobs_that_run(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", input_ended=False))
    await stop(worker, ear)
    assert ear.of("a") == [JobEnded("a", Outcome.CANCELLED)]


async def test_a_worker_leaves_in_five_seconds_and_so_does_all_that_it_shared(
    executor: Executor,
) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("word " * 1000), credit=1))
    async with asyncio.timeout(PATIENCE_S):
        await stop(worker, ear)
    async with asyncio.timeout(PATIENCE_S):
        await executor.close()


async def test_a_closed_executor_may_start_workers_again(executor: Executor) -> None:
    for _ in range(2):
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        await stop(worker, ear)
        await executor.close()


async def test_a_job_that_fails_leaves_the_worker_alive(executor: Executor) -> None:
    ear = Ear()
    fault = {"fault": {"kind": "raise", "when_text": "bad"}}
    worker = await executor.start(spec(settings=fault), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("bad")))
    worker.send(Open("b", TextDelta("good")))
    await ear.until(lambda: len(ear.of("a")) == 1 and len(ear.of("b")) == 2)
    (ended,) = ear.of("a")
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_failed")
    await stop(worker, ear)


async def test_a_runner_that_crashes_takes_its_worker_along_and_the_reason_is_known(
    executor: Executor,
) -> None:
    ear = Ear()
    worker = await executor.start(spec(settings={"fault": {"kind": "crash"}}), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("secret words")))
    loss = await ear.lost()
    assert loss.code == "worker_crashed"
    assert loss.reason.startswith("RuntimeError at scripted.py:")
    assert "secret" not in loss.reason


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (spec("organ"), "no runner is called 'organ'"),
        (spec("tone", settings={"pitch": 440}), "pitch"),
    ],
)
async def test_a_worker_that_cannot_become_ready_says_why(
    executor: Executor, broken: WorkerSpec, reason: str
) -> None:
    ear = Ear()
    await executor.start(broken, ear)
    loss = await ear.lost()
    assert loss.code == "invalid_config"
    assert reason in loss.reason
    assert ear.reports == []


async def test_a_worker_that_hangs_can_be_got_rid_of(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(settings={"fault": {"kind": "hang"}}), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("one")))
    for _ in range(3):  # it has left; whether the step has begun makes no difference
        await asyncio.sleep(0)
    worker.kill()
    loss = await ear.lost()
    assert loss.code == "replica_lost"
    assert not any(isinstance(each, JobOutput | JobEnded) for each in ear.of("a"))


async def test_a_worker_that_is_killed_twice_is_lost_once(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.kill()
    worker.kill()
    await ear.lost()
    worker.kill()
    worker.send(Cancel("a"))
    await asyncio.sleep(0)
    assert len(ear.losses) == 1


async def test_a_lost_worker_is_followed_by_another(executor: Executor) -> None:
    for _ in range(3):
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.kill()
        await ear.lost()
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("well again")))
    await ear.ended("a")
    assert ear.text("a") == "well again"
    await stop(worker, ear)


async def test_what_was_under_way_is_let_go_of_with_its_worker(executor: Executor) -> None:
    """Neither a transport's buffer nor a queue, a timer or a file holds on to it."""
    lost = []
    files, names = open_files(), shared_memory()
    for ending in ("crash", "kill"):
        ear = Ear()
        worker = await executor.start(spec(settings={"fault": {"kind": "crash"}}), ear)
        await ear.ready()
        worker.send(Open("a", input_ended=False))
        for number in range(8):
            worker.send(Append("a", AudioChunk(bytes(2**20), 16_000, number * 2**19)))
        if ending == "crash":
            worker.send(Open("b", TextDelta("one")))
        else:
            await asyncio.sleep(0)
            worker.kill()
        await ear.lost()
        lost.append(weakref.ref(worker))
        del worker, ear
    await executor.close()

    def are_gone() -> bool:
        gc.collect()
        return all(each() is None for each in lost)

    await until(are_gone)
    await until(lambda: open_files() == files)
    assert shared_memory() == names


async def test_a_worker_sleeps_and_wakes_when_told_and_says_what_that_has_freed(
    executor: Executor,
) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Sleep(2))
    await ear.until(lambda: any(isinstance(each, Rested) for each in ear.messages))
    worker.send(Wake())
    worker.send(Open("a", TextDelta("well again")))
    await ear.ended("a")
    asleep, awake = [each for each in ear.messages if isinstance(each, Rested)]
    assert (asleep.level, asleep.code, awake.level) == (2, "", 0)
    assert ear.text("a") == "well again"
    await stop(worker, ear)


async def test_a_worker_that_is_told_to_hold_makes_no_step_until_it_is_told_to_go_on(
    executor: Executor,
) -> None:
    ear = Ear()
    worker = await executor.start(spec(), ear)
    await ear.ready()
    worker.send(Pause(on=True))
    worker.send(Open("a", TextDelta("kept")))
    worker.send(Open("b", TextDelta("given up")))
    worker.send(Cancel("b"))
    await ear.ended("b")
    assert sum(isinstance(each, Paused) for each in ear.messages) == 1
    assert ear.of("a") == []
    worker.send(Pause(on=False))
    await ear.ended("a")
    assert (ear.text("a"), ear.text("b")) == ("kept", "")
    await stop(worker, ear)


async def test_a_worker_that_starts_asleep_loads_when_it_wakes(executor: Executor) -> None:
    ear = Ear()
    worker = await executor.start(spec(asleep=True), ear)
    await ear.until(lambda: bool(ear.messages))
    (ready,) = ear.messages
    assert isinstance(ready, Ready)
    assert (ready.level, ear.phases) == (2, [])
    worker.send(Wake())
    worker.send(Open("a", TextDelta("good morning")))
    await ear.ended("a")
    assert ear.phases[:2] == ["import", "load"]
    assert ear.text("a") == "good morning"
    await stop(worker, ear)
