"""Is there an order of events in which a request is told two ends, or a slot is forgotten?"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.core.errors import EngineError
from duologue.core.fence import SESSION_LANE, Fence, Lane
from duologue.engines.messages import Append, Cancel, Finish, Grant, Open
from duologue.engines.orchestrator.request_table import (
    Deliver,
    Drop,
    Effect,
    KillWorker,
    RequestTable,
    ToStage,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, Outcome, Request

# Thousands of random steps: on a busy machine they outlast the time that one test usually has.

GRACE_S = 5.0
PIPELINES = [
    Pipeline(name="one", stages=(StageSpec(name="one", runner="script"),)),
    Pipeline(
        name="three",
        stages=(
            StageSpec(name="a", runner="script", credit=3, edge="text_only"),
            StageSpec(name="b", runner="script", credit=2),
            StageSpec(name="c", runner="script"),
        ),
    ),
]


class Worker:
    """A job at a stage, as a correct worker keeps it: it speaks until it has ended, then never."""

    def __init__(self, opening: Open) -> None:
        self.credit = opening.credit
        self.inputs = 0
        self.input_ended = opening.input_ended
        self.taken_at_once = opening.taken_at_once
        self.cancelled = False


class RequestTableMachine(RuleBasedStateMachine):
    """Callers and workers act in any order; messages between them are delivered at once."""

    def __init__(self) -> None:
        super().__init__()
        self.table = RequestTable(GRACE_S)
        self.now = 0.0
        self.submitted: dict[str, Request] = {}
        self.fences: dict[str, Fence] = {}
        self.told: dict[str, Ended] = {}
        self.cancelled: set[str] = set()
        self.jobs: dict[tuple[str, str], Worker] = {}
        self.opened: dict[tuple[str, str], int] = {}
        self.killed: list[KillWorker] = []

    def perform(self, effects: Sequence[Effect]) -> None:
        effects = list(effects)
        told = [effect for effect in effects if isinstance(effect, Deliver)]
        assert told in ([], effects[-1:]), "at most one event, and at the end"
        for effect in effects:
            match effect:
                case ToStage(stage=stage, message=message):
                    self.to_stage(stage, message)
                case Deliver(event=event):
                    assert event.fence == self.fences[event.request_id]
                    assert event.request_id not in self.told, "nothing follows an end"
                    if isinstance(event, Ended):
                        self.told[event.request_id] = event
                    else:
                        assert event.request_id not in self.cancelled
                case KillWorker(stage=stage, job=job):
                    assert (stage, job) in self.jobs, "only what still runs is killed"
                    self.killed.append(effect)
                case Drop():
                    pass

    def to_stage(self, stage: str, message: object) -> None:
        if isinstance(message, Open):
            key = (stage, message.job)
            assert key not in self.opened, "a stage is opened once"
            self.opened[key] = 1
            self.jobs[key] = Worker(message)
            return
        worker = self.jobs.get((stage, message.job))  # type: ignore[attr-defined]
        if worker is None:
            return  # the end of the job crossed the message
        match message:
            case Append():
                assert not worker.input_ended, "no input follows its end"
                assert not worker.cancelled, "no input follows a cancel"
                worker.inputs += 1
            case Finish():
                assert not worker.input_ended
                worker.input_ended = True
            case Grant(credit=credit):
                assert credit > 0
                if worker.credit is not None:
                    worker.credit += credit
            case Cancel():
                assert not worker.cancelled, "a cancel is sent once"
                worker.cancelled = True

    @rule(
        pipeline=st.sampled_from(PIPELINES),
        more_input=st.booleans(),
        credit=st.one_of(st.none(), st.integers(1, 3)),
        patience_s=st.one_of(st.none(), st.floats(0.1, 20)),
    )
    def submit(
        self, pipeline: Pipeline, more_input: bool, credit: int | None, patience_s: float | None
    ) -> None:
        number = len(self.submitted)
        request = Request(
            f"r{number}",
            pipeline.name,
            Fence("session", SESSION_LANE, number),
            more_input=more_input,
            credit=credit,
            deadline_s=None if patience_s is None else self.now + patience_s,
        )
        self.submitted[request.id] = request
        self.fences[request.id] = request.fence
        self.perform(self.table.submit(request, pipeline))

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        self.perform(self.table.append(self.a_request(data), TextDelta("input")))

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def finish_input(self, data: st.DataObject) -> None:
        self.perform(self.table.finish_input(self.a_request(data)))

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), credit=st.integers(1, 5))
    def grant(self, data: st.DataObject, credit: int) -> None:
        self.perform(self.table.grant(self.a_request(data), credit))

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request_id = self.a_request(data)
        self.perform(self.table.cancel(request_id, self.now))
        self.cancelled.add(request_id)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), epoch=st.integers(0, 3))
    def refence(self, data: st.DataObject, epoch: int) -> None:
        request_id = self.a_request(data)
        self.fences[request_id] = Fence("session", Lane("response"), epoch)
        self.table.refence(request_id, self.fences[request_id])

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def fail_from_outside(self, data: st.DataObject) -> None:
        self.perform(self.table.fail(self.a_request(data), EngineError("stop"), self.now))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), text=st.sampled_from(["word", " "]))
    def worker_steps(self, data: st.DataObject, text: str) -> None:
        stage, job = self.a_job(data)
        worker = self.jobs[stage, job]
        if worker.credit is not None and worker.credit <= 0:
            return
        if worker.inputs:
            worker.inputs -= 1
            self.perform(self.table.on_taken(stage, job, 1))
        if worker.credit is not None:
            worker.credit -= 1
        self.perform(self.table.on_output(stage, job, TextDelta(text)))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def worker_ends_a_job(self, data: st.DataObject, outcome: Outcome) -> None:
        stage, job = self.a_job(data)
        if outcome is Outcome.CANCELLED and not self.jobs[stage, job].cancelled:
            outcome = Outcome.COMPLETED
        self.end_job(stage, job, outcome)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def worker_is_lost_with_all_its_jobs(self, data: st.DataObject) -> None:
        stage, _ = self.a_job(data)
        for key in [key for key in self.jobs if key[0] == stage]:
            if key in self.jobs:
                self.end_job(*key, Outcome.FAILED)

    @rule(seconds=st.floats(0, 10))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        while effects := self.table.on_timer(self.now):
            self.perform(effects)
        while self.killed:
            kill = self.killed.pop()
            if (kill.stage, kill.job) in self.jobs:
                self.end_job(kill.stage, kill.job, Outcome.FAILED)
        deadline = self.table.next_deadline()
        assert deadline is None or deadline > self.now

    @invariant()
    def a_request_is_in_the_table_exactly_while_a_stage_holds_it(self) -> None:
        assert set(self.table.request_ids()) == {job for _, job in self.jobs}

    @invariant()
    def a_request_that_left_the_table_was_told_its_end(self) -> None:
        for request_id in self.submitted:
            assert request_id in self.table or request_id in self.told

    @invariant()
    def a_request_with_an_end_runs_nowhere_uncancelled(self) -> None:
        for (_, job), worker in self.jobs.items():
            assert worker.cancelled or job not in self.told

    def teardown(self) -> None:
        """Whatever has happened, a cancel of everything empties the table."""
        for request_id in self.table.request_ids():
            self.perform(self.table.cancel(request_id, self.now))
        for key in list(self.jobs):
            self.end_job(*key, Outcome.CANCELLED)
        assert len(self.table) == 0
        assert self.told.keys() == self.submitted.keys()
        assert self.table.next_deadline() is None

    def a_request(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.submitted)))

    def a_job(self, data: st.DataObject) -> tuple[str, str]:
        return data.draw(st.sampled_from(sorted(self.jobs)))

    def end_job(self, stage: str, job: str, outcome: Outcome) -> None:
        del self.jobs[stage, job]
        self.perform(self.table.on_ended(stage, job, outcome, "", "", self.now))


TestRequestTable = RequestTableMachine.TestCase
