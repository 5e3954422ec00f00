"""Is there an order of calls and workers' deeds in which the engine raises, or forgets something?

Callers append, cancel and so on whenever they like: while a worker is lost and another one starts,
after a cancel, after the end. Workers die at any moment, and what a lost one still says comes late.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.core.errors import CapacityError, EngineError, ReplicaLost
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.messages import Append, Cancel, JobEnded, JobOutput, JobTaken, Open
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, EngineEvent, Outcome, Request
from duologue.engines.settings import EngineSettings
from tests.fakes.clock import FakeClock
from tests.fakes.executor import FakeExecutor, FakeWorker
from tests.patience import PATIENCE_S

LIMIT_BYTES = 64 * 1024
PIPELINES = {
    "one": Pipeline(
        name="one",
        stages=(
            StageSpec(
                name="one",
                runner="script",
                replicas=2,
                max_jobs=2,
                queue=2,
                max_input_bytes=LIMIT_BYTES,
            ),
        ),
    ),
    "two": Pipeline(
        name="two",
        stages=(
            StageSpec(name="words", runner="script", max_jobs=2, credit=2, queue=1),
            StageSpec(name="tones", runner="tone", max_jobs=1, queue=2),
        ),
    ),
}
SETTINGS = EngineSettings(
    cancel_grace_s=1000,
    start_timeout_s=1000,
    restart_backoff_s=1e-6,
    restart_backoff_max_s=1e-6,
)


class Caller:
    """Hears of one request; the engine alone keeps it alive."""

    def __init__(self, log: Callable[[EngineEvent], None]) -> None:
        self._log = log

    def on_engine_event(self, event: EngineEvent) -> None:
        self._log(event)


class Hand:
    """A worker that the test plays, with the jobs that it holds."""

    def __init__(self, worker: FakeWorker) -> None:
        self.worker = worker
        self.lost = False
        self.ended: set[str] = set()

    @property
    def opened(self) -> list[str]:
        return sorted({each.job for each in self.worker.sent if isinstance(each, Open)})

    @property
    def open_jobs(self) -> list[str]:
        return [job for job in self.opened if job not in self.ended]

    def cancelled(self, job: str) -> bool:
        return Cancel(job) in self.worker.sent


class EngineMachine(RuleBasedStateMachine):
    """Callers and workers act in any order; ids are used once."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.faults: list[dict[str, object]] = []
        self.loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.executor = FakeExecutor()
        self.hands: list[Hand] = []
        self.submitted: list[str] = []
        self.ended: dict[str, Ended] = {}
        self.callers: list[weakref.ref[Caller]] = []
        self.taken: dict[tuple[int, str], int] = {}
        executors = {"process": self.executor}
        self.engine = Engine(PIPELINES, SETTINGS, clock=FakeClock(), executors=executors)
        self.run(self.begin())

    async def begin(self) -> None:
        start = asyncio.create_task(self.engine.start())
        await self.until(lambda: len(self.executor.workers) == 4)
        for worker in self.executor.workers:
            worker.warm()
        await start

    @rule(
        pipeline=st.sampled_from(sorted(PIPELINES)),
        more_input=st.booleans(),
        credit=st.one_of(st.none(), st.integers(0, 3)),
    )
    def submit(self, pipeline: str, more_input: bool, credit: int | None) -> None:
        request_id = f"r{len(self.submitted)}"
        fence = Fence("session", SESSION_LANE, 0)
        first = None if more_input else TextDelta("a question")
        request = Request(request_id, pipeline, fence, first, more_input, credit)
        with suppress(CapacityError, ReplicaLost):
            self.act(lambda: self.engine.submit(request, self.caller()))
            self.submitted.append(request_id)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), size=st.sampled_from([0, 10, LIMIT_BYTES // 2, LIMIT_BYTES]))
    def append(self, data: st.DataObject, size: int) -> None:
        request_id = self.a_request(data)
        self.act(lambda: self.engine.append(request_id, AudioChunk(bytes(size), 16_000)))

    @precondition(lambda self: self.submitted)
    @rule(
        data=st.data(), call=st.sampled_from(["finish", "cancel", "grant", "refence", "subscribe"])
    )
    def call(self, data: st.DataObject, call: str) -> None:
        request_id = self.a_request(data)
        match call:
            case "finish":
                self.act(lambda: self.engine.finish_input(request_id))
            case "cancel":
                self.act(lambda: self.engine.cancel(request_id))
            case "grant":
                self.act(lambda: self.engine.grant(request_id, 1))
            case "refence":
                self.act(lambda: self.engine.refence(request_id, Fence("s", SESSION_LANE, 1)))
            case _:
                self.act(lambda: self.engine.subscribe(request_id, self.caller()))

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def submit_an_id_again(self, data: st.DataObject) -> None:
        request_id = self.a_request(data)
        if request_id not in self.ended:
            request = Request(request_id, "one", Fence("session", SESSION_LANE, 0), more_input=True)
            with pytest.raises((EngineError, CapacityError)):
                self.act(lambda: self.engine.submit(request, self.caller()))

    @precondition(lambda self: any(hand.opened for hand in self.hands))
    @rule(data=st.data(), deed=st.sampled_from(["output", "take", "end", "end", "warm"]))
    def a_worker_speaks(self, data: st.DataObject, deed: str) -> None:
        """Any that ever was: lost ones, and of jobs that have ended, speak too late."""
        hand = data.draw(st.sampled_from([hand for hand in self.hands if hand.opened]))
        job = data.draw(st.sampled_from(hand.opened))
        match deed:
            case "output":
                self.act(lambda: hand.worker.report(JobOutput(job, TextDelta("word"))))
            case "take":
                self.take(hand, job)
            case "warm":
                self.act(hand.worker.warm)
            case _:
                outcome = data.draw(st.sampled_from([Outcome.COMPLETED, Outcome.FAILED]))
                self.act(lambda: hand.worker.report(JobEnded(job, outcome)))
                hand.ended.add(job)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def a_worker_answers_its_cancels(self, data: st.DataObject) -> None:
        self.answer(data.draw(st.sampled_from(self.live())))

    @precondition(lambda self: self.live())
    @rule(data=st.data(), warm=st.booleans())
    def a_worker_is_lost_and_another_starts(self, data: st.DataObject, warm: bool) -> None:
        hand = data.draw(st.sampled_from(self.live()))
        hand.lost = True
        count = len(self.executor.workers)
        self.act(hand.worker.lose)
        self.run(self.until(lambda: len(self.executor.workers) > count))
        if warm:
            self.act(self.executor.workers[-1].warm)

    @rule()
    def workers_get_warm(self) -> None:
        for hand in self.live():
            self.act(hand.worker.warm)

    @rule()
    def the_loop_turns(self) -> None:
        self.run(asyncio.sleep(0))

    @invariant()
    def nothing_was_raised_on_the_loop(self) -> None:
        assert self.faults == []

    def teardown(self) -> None:
        """Whatever has happened: all is told, nothing is held, and new requests are served."""
        try:
            self.workers_get_warm()
            for request_id in self.submitted:
                self.act(lambda each=request_id: self.engine.cancel(each))
            for _ in range(2):  # the second time those that waited for a worker to answer
                for hand in self.live():
                    self.answer(hand)
            self.run(asyncio.sleep(0))
            assert self.ended.keys() == set(self.submitted)
            stats = self.engine.stats()
            assert stats.requests == 0
            assert [(each.busy, each.queued) for each in stats.stages] == [(0, 0)] * 3
            if any(caller() is not None for caller in self.callers):
                gc.collect()  # a refusal that was raised may hold one in a cycle
            assert [caller for caller in self.callers if caller() is not None] == []
            self.submit("two", more_input=True, credit=None)
            self.run(asyncio.sleep(0))
            holders = [hand for hand in self.live() if self.submitted[-1] in hand.open_jobs]
            assert len(holders) == 2, "both stages have it"
        finally:
            for hand in self.live():
                hand.lost = True
                self.act(hand.worker.lose)
            self.run(self.engine.stop())
            self.loop.close()
        assert self.faults == []

    def live(self) -> list[Hand]:
        return [hand for hand in self.hands if not hand.lost]

    def answer(self, hand: Hand) -> None:
        for job in hand.open_jobs:
            if hand.cancelled(job):
                hand.ended.add(job)
                answer = JobEnded(job, Outcome.CANCELLED)
                self.act(lambda each=answer: hand.worker.report(each))

    def take(self, hand: Hand, job: str) -> None:
        """All that it was sent and has not taken yet; a worker that is wrong takes what is not."""
        opening = next(each for each in hand.worker.sent if each.job == job)  # type: ignore[union-attr]
        first = [opening.first] if isinstance(opening, Open) and opening.first else []
        appends = [e.payload for e in hand.worker.sent if isinstance(e, Append) and e.job == job]
        inputs = [*first, *appends]
        key = (self.hands.index(hand), job)
        new = inputs[self.taken.get(key, 0) :]
        self.taken[key] = len(inputs)
        if new and job in hand.open_jobs:
            size = sum(each.size_bytes() for each in new)
            self.act(lambda: hand.worker.report(JobTaken(job, len(new), size)))
        elif job not in hand.open_jobs:
            self.act(lambda: hand.worker.report(JobTaken(job, 1, 1)))

    def caller(self) -> Caller:
        caller = Caller(self.heard)
        self.callers.append(weakref.ref(caller))
        return caller

    def heard(self, event: EngineEvent) -> None:
        assert event.request_id not in self.ended, "nothing follows an end"
        if isinstance(event, Ended):
            self.ended[event.request_id] = event

    def a_request(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(self.submitted))

    def act(self, call: Callable[[], None]) -> None:
        """Do something within a turn of the loop, as callers and executors do."""

        async def on_the_loop() -> None:
            call()

        self.run(on_the_loop())

    def run(self, work: Coroutine[object, object, object]) -> None:
        self.loop.run_until_complete(work)
        self.hands += [Hand(worker) for worker in self.executor.workers[len(self.hands) :]]

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():  # noqa: ASYNC110
                await asyncio.sleep(0)


TestEngineStreams = EngineMachine.TestCase
# Each step is several turns of a loop, and each example a loop of its own.
TestEngineStreams.settings = settings(max_examples=max(1, settings().max_examples // 4))
