"""A worker in the test's own thread, and a runner that gives back what it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duologue.core.errors import EngineError
from duologue.engines.messages import (
    Begun,
    FromWorker,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    Paused,
    Ready,
    Report,
    Rested,
    Stop,
    ToWorker,
)
from duologue.engines.payloads import Payload, TextDelta
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import Built, Wake
from duologue.engines.schedulers.base import Choice, Scheduler
from duologue.engines.schedulers.fifo import Fifo
from duologue.engines.stage_worker import StageWorker
from duologue.engines.worker_model import Announce
from tests.fakes.clock import FakeClock


class EchoRunner:
    """Gives each input back, one a step, and writes down what was asked of it.

    ``during_step`` is called within each step, as if another thread did something meanwhile.
    """

    def __init__(self, max_batch: int = 8) -> None:
        self.max_batch = max_batch
        self.calls: list[str] = []
        self.batches: list[list[str]] = []
        self.during_step: Callable[[Sequence[Job]], None] = lambda jobs: None
        self.answer: Callable[[Job, Payload], Step] = lambda job, payload: Step((payload,))
        self.refuse: set[str] = set()
        self.starve: set[str] = set()

    def warm_up(self) -> None:
        self.calls.append("warm_up")

    def open(self, job: Job) -> None:
        if job.id in self.refuse:
            raise EngineError("no room", code="out_of_memory")
        if job.id in self.starve:
            raise MemoryError
        self.calls.append(f"open {job.id}")

    def ready(self, job: Job) -> bool:
        return bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        self.batches.append([job.id for job in jobs])
        self.during_step(jobs)
        return [self.answer(job, job.inputs.popleft()) for job in jobs]

    def close(self, job: Job) -> None:
        self.calls.append(f"close {job.id}")


class Scene:
    """A worker that runs in the test's own thread, until it has nothing to do.

    ``then`` holds what is sent to it each time it has become idle; after that it is stopped.
    """

    def __init__(
        self,
        runner: EchoRunner | None = None,
        *,
        wakes_itself: bool = False,
        sleep_levels: tuple[int, ...] = (),
        asleep: bool = False,
        schedule: Callable[[int], Scheduler] = Fifo,
    ) -> None:
        self.runner = runner or EchoRunner()
        self.reports: list[Report] = []
        self.wake: Wake | None = None
        self.then: list[Sequence[ToWorker] | Callable[[], None]] = []
        self.clock = FakeClock()

        def load(wake: Wake, announce: Announce) -> Built:
            self.wake = wake
            announce("load")
            if self.unloadable is not None:
                raise self.unloadable
            return Built(self.runner, wakes_itself, sleep_levels)

        self.worker = StageWorker(
            load=load,
            schedule=lambda max_batch: IdleHook(schedule(max_batch), self.on_idle),
            post=self.post,
            clock=self.clock,
            asleep=asleep,
        )
        self.level = 0
        self.phases: list[str] = []
        self.unloadable: EngineError | None = None
        self.on_report: Callable[[Report], None] = lambda report: None

    def post(self, report: Report) -> None:
        if isinstance(report.messages[0] if report.messages else None, Begun):
            self.phases.append(report.messages[0].phase)  # type: ignore[union-attr]
            return
        self.reports.append(report)
        self.on_report(report)
        for message in report.messages:
            if isinstance(message, Ready | Rested):
                self.level = message.level
        if self.level or any(isinstance(each, Paused) for each in report.messages):
            self.on_idle()  # while it sleeps, or holds its work, no scheduler is asked

    def on_idle(self) -> None:
        if not self.then:
            self.worker.receive((Stop(),))
            return
        step = self.then.pop(0)
        if callable(step):
            step()
        else:
            self.worker.receive(step)

    def run(self, *messages: ToWorker) -> None:
        self.worker.receive(messages)
        self.worker.run()

    @property
    def said(self) -> list[FromWorker]:
        """All that was reported, but for the first word and what was taken."""
        messages = [message for report in self.reports for message in report.messages]
        assert isinstance(messages[0], Ready)
        return [message for message in messages[1:] if not isinstance(message, JobTaken)]

    @property
    def taken(self) -> list[JobTaken]:
        messages = [message for report in self.reports for message in report.messages]
        return [message for message in messages if isinstance(message, JobTaken)]

    def of(self, job: str) -> list[FromWorker]:
        of_jobs = [message for message in self.said if not isinstance(message, Rested | Paused)]
        return [message for message in of_jobs if message.job == job]  # type: ignore[union-attr]

    def text(self, job: str) -> str:
        outputs = [message.payload for message in self.of(job) if isinstance(message, JobOutput)]
        return "".join(payload.text for payload in outputs if isinstance(payload, TextDelta))

    def end(self, job: str) -> JobEnded:
        (ended,) = [message for message in self.of(job) if isinstance(message, JobEnded)]
        return ended


class IdleHook:
    """A scheduler that calls a hook whenever there is nothing to choose from."""

    def __init__(self, scheduler: Scheduler, on_idle: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._on_idle = on_idle

    def next_batch(self, ready: Sequence[Job], now: float) -> Choice:
        choice = self._scheduler.next_batch(ready, now)
        if not choice.batch and choice.wake_at is None:
            self._on_idle()
        return choice


def word(text: str) -> TextDelta:
    return TextDelta(text)


def stream(job: str, credit: int | None = None) -> Open:
    return Open(job, input_ended=False, credit=credit)
