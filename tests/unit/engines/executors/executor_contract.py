"""What every executor promises, wherever its workers run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import pytest

from duologue.engines.executors.base import Executor, Loss, Worker
from duologue.engines.messages import (
    Append,
    Cancel,
    Finish,
    FromWorker,
    Grant,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Ready,
    Report,
    Stop,
    WorkerSpec,
)
from duologue.engines.payloads import Payload, SpeakText, TextDelta
from duologue.engines.ports import Outcome
from duologue.engines.runners.contract import Job
from duologue.engines.runners.scripted import ToneRunner, ToneSettings


class Ear:
    """Keeps what a worker says."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.losses: list[Loss] = []
        self.news = asyncio.Event()

    def on_report(self, report: Report) -> None:
        assert not self.losses, "nothing is heard of a worker after its loss"
        self.reports.append(report)
        self.news.set()

    def on_lost(self, loss: Loss) -> None:
        self.losses.append(loss)
        self.news.set()

    @property
    def messages(self) -> list[FromWorker]:
        return [message for report in self.reports for message in report.messages]

    def of(self, job: str) -> list[FromWorker]:
        """What came of a job, but for what it has taken."""
        jobs = [each for each in self.messages if not isinstance(each, Ready | JobTaken)]
        return [each for each in jobs if each.job == job]

    def text(self, job: str) -> str:
        outputs = [each.payload for each in self.of(job) if isinstance(each, JobOutput)]
        return "".join(each.text for each in outputs if isinstance(each, TextDelta))

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not done():
                self.news.clear()
                await self.news.wait()

    async def ready(self) -> None:
        await self.until(lambda: bool(self.messages or self.losses))
        assert isinstance(self.messages[0], Ready)

    async def lost(self) -> Loss:
        await self.until(lambda: bool(self.losses))
        return self.losses[0]


def spec(runner: str = "script", name: str = "stage/0", **fields: object) -> WorkerSpec:
    return WorkerSpec(name=name, runner=runner, **fields)


def made_here(clause: SpeakText) -> list[Payload]:
    """What ``tone`` makes of a clause, without anything in between."""
    runner = ToneRunner(ToneSettings())
    job = Job(id="here", inputs=deque([clause]), input_ended=True)
    runner.open(job)
    outputs: list[Payload] = []
    while runner.ready(job):
        outputs += runner.step([job])[0].outputs
    return outputs


async def stop(worker: Worker, ear: Ear) -> None:
    worker.send(Stop())
    await ear.lost()


class ExecutorContract:
    """Inherit, and provide the fixture ``executor``."""

    async def test_a_worker_becomes_ready_works_and_leaves_when_told(
        self, executor: Executor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("one two three")))
        await ear.until(lambda: len(ear.of("a")) == 4)
        assert ear.text("a") == "one two three"
        assert ear.of("a")[-1] == JobEnded("a", Outcome.COMPLETED)
        await stop(worker, ear)
        assert len(ear.losses) == 1

    async def test_messages_arrive_in_order(self, executor: Executor) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", input_ended=False))
        for number in range(200):
            worker.send(Append("a", TextDelta(f"{number}.")))
        worker.send(Finish("a"))
        await ear.until(lambda: bool(ear.of("a")) and isinstance(ear.of("a")[-1], JobEnded))
        assert ear.text("a") == "".join(f"{number}." for number in range(200))
        await stop(worker, ear)

    async def test_messages_of_later_turns_of_the_loop_arrive_as_well(
        self, executor: Executor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", input_ended=False))
        for number in range(3):
            worker.send(Append("a", TextDelta(str(number))))
            await ear.until(lambda count=number: len(ear.of("a")) == count + 1)
        await stop(worker, ear)
        assert ear.text("a") == "012"

    async def test_bytes_are_not_changed_on_the_way(self, executor: Executor) -> None:
        ear = Ear()
        clause = SpeakText("a clause to speak", text_end=17)
        worker = await executor.start(spec("tone"), ear)
        await ear.ready()
        worker.send(Open("a", clause))
        await ear.until(lambda: bool(ear.of("a")) and isinstance(ear.of("a")[-1], JobEnded))
        await stop(worker, ear)
        heard = [each.payload for each in ear.of("a") if isinstance(each, JobOutput)]
        assert heard == made_here(clause)

    async def test_a_cancel_is_acknowledged_while_other_jobs_go_on(
        self, executor: Executor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("word " * 1000), credit=1))
        worker.send(Open("b", TextDelta("one two"), credit=1))
        await ear.until(lambda: bool(ear.of("a")) and bool(ear.of("b")))
        worker.send(Cancel("a"))
        worker.send(Grant("b", 1))
        await ear.until(lambda: any(isinstance(each, JobEnded) for each in ear.of("b")))
        assert ear.of("a") == [
            JobOutput("a", TextDelta("word")),
            JobEnded("a", Outcome.CANCELLED),
        ]
        assert ear.text("b") == "one two"
        await stop(worker, ear)

    async def test_stopping_ends_the_jobs_that_run(self, executor: Executor) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", input_ended=False))
        await stop(worker, ear)
        assert ear.of("a") == [JobEnded("a", Outcome.CANCELLED)]

    async def test_a_job_that_fails_leaves_the_worker_alive(self, executor: Executor) -> None:
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
        self, executor: Executor
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
        self, executor: Executor, broken: WorkerSpec, reason: str
    ) -> None:
        ear = Ear()
        await executor.start(broken, ear)
        loss = await ear.lost()
        assert loss.code == "invalid_config"
        assert reason in loss.reason
        assert ear.reports == []

    async def test_a_worker_that_hangs_can_be_got_rid_of(self, executor: Executor) -> None:
        ear = Ear()
        worker = await executor.start(spec(settings={"fault": {"kind": "hang"}}), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("one")))
        await self.is_stuck(worker)
        worker.kill()
        loss = await ear.lost()
        assert loss.code == "replica_lost"
        assert not any(isinstance(each, JobOutput | JobEnded) for each in ear.of("a"))

    async def test_a_worker_that_is_killed_twice_is_lost_once(self, executor: Executor) -> None:
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

    async def is_stuck(self, worker: Worker) -> None:
        """The message has left; whether the step has begun makes no difference to the promise."""
        for _ in range(3):
            await asyncio.sleep(0)
