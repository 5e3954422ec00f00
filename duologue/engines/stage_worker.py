"""The loop around one runner: messages in, steps, reports out.

It runs in a thread of its own, in whatever process the executor chose, and sleeps while no job
can be stepped. It must not know executors, pipelines or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from duologue.core.clock import Clock
from duologue.core.errors import EngineError
from duologue.engines.credit import cost
from duologue.engines.inbox import Inbox
from duologue.engines.messages import (
    Append,
    Cancel,
    Finish,
    FromWorker,
    Grant,
    JobEnded,
    JobMessage,
    JobOutput,
    JobTaken,
    Open,
    Ready,
    Report,
    Stop,
    ToWorker,
)
from duologue.engines.payloads import Failure
from duologue.engines.ports import Outcome
from duologue.engines.runners.contract import Job, Runner, Step
from duologue.engines.runners.registry import Built, Wake
from duologue.engines.schedulers.base import Scheduler

INPUT_OVERFLOW = "input_overflow"


class _Woken:
    """The runner says that jobs may have become ready."""


_WOKEN: Final = _Woken()


@dataclass(eq=False, slots=True)
class _Record:
    """A job with what the worker itself must know of it.

    Args:
        received: Inputs that arrived. Written by the receiving thread alone.
        overflowed: More arrived than may wait. Written by the receiving thread alone.
        applied: Inputs handed to the job. Written by the working thread, as all below.
        reported: Inputs that ``JobTaken`` told of; ``None``: nobody wants to know.
    """

    job: Job
    received: int = 0
    overflowed: bool = False
    applied: int = 0
    reported: int | None = None
    opened: bool = False
    ended: bool = False

    @property
    def taken(self) -> int:
        return self.applied - len(self.job.inputs)


_News = tuple[_Record, JobMessage] | Stop | _Woken


class StageWorker:
    """One runner and its jobs.

    Args:
        load: Makes the runner. Called in ``run``, hence in the working thread.
        schedule: Makes the scheduler from the runner's ``max_batch``.
        post: Takes reports; called in the working thread. May wait, which slows the steps.
        max_inputs: How many inputs of one job may wait for a step.

    Concurrency:
        ``run`` owns everything. ``receive`` is called from one other thread and only registers
        new jobs, marks cancelled ones and passes messages on; ``wake`` may come from any.
    """

    def __init__(
        self,
        *,
        load: Callable[[Wake], Built],
        schedule: Callable[[int], Scheduler],
        post: Callable[[Report], None],
        clock: Clock,
        max_inputs: int,
    ) -> None:
        self._load = load
        self._schedule = schedule
        self._post = post
        self._clock = clock
        self._max_inputs = max_inputs
        self._wakes_itself = False
        self._inbox: Inbox[_News] = Inbox()
        self._records: dict[str, _Record] = {}
        # In the order in which they began to wait for a step. Jobs that cannot be stepped are
        # not in it until news of them comes, so a step costs nothing for idle jobs.
        self._waiting: dict[str, _Record] = {}
        self._outgoing: list[FromWorker] = []
        self._stopping = False
        self.outputs_dropped = 0

    def receive(self, messages: Iterable[ToWorker]) -> None:
        """Take messages, in order. A cancel takes effect at once, in the midst of a step."""
        news: list[_News] = []
        for message in messages:
            if isinstance(message, Stop):
                news.append(message)
                continue
            record = self._record_of(message)
            if record is not None:
                news.append((record, message))
        self._inbox.put(news)

    def wake(self) -> None:
        """Look again which jobs are ready."""
        self._inbox.put((_WOKEN,))

    def run(self) -> None:
        """Load and warm the runner, then work until told to stop.

        Raises:
            DuologueError: The runner cannot be loaded.
        """
        started = self._clock.now()
        runner, self._wakes_itself = self._load(self.wake)
        runner.warm_up()
        scheduler = self._schedule(runner.max_batch)
        self._outgoing.append(Ready(took_s=self._clock.now() - started))
        timeout_s: float | None = 0.0
        while True:
            self._flush()
            for news in self._inbox.take(timeout_s):
                self._apply(news, runner)
            if self._stopping:
                break
            choice = scheduler.next_batch(self._ready_jobs(runner), self._clock.now())
            if choice.batch:
                self._step(choice.batch, runner)
                timeout_s = 0.0
            elif choice.wake_at is not None:
                timeout_s = max(0.0, choice.wake_at - self._clock.now())
            else:
                timeout_s = None
        for record in list(self._records.values()):
            self._end(record, runner, Outcome.CANCELLED)
        self._flush()

    def _record_of(self, message: JobMessage) -> _Record | None:
        """Find or make the record of a message; ``None`` where its job has ended."""
        if isinstance(message, Open):
            record = self._records[message.job] = _Record(
                Job(id=message.job, credit=message.credit),
                received=0 if message.first is None else 1,
                reported=0 if message.report_taken else None,
            )
            return record
        found = self._records.get(message.job)
        if found is None:
            return None
        if isinstance(message, Append):
            if found.overflowed:
                return None
            found.received += 1
            found.overflowed = found.received - found.taken > self._max_inputs
        elif isinstance(message, Cancel):
            found.job.cancelled = True
        return found

    def _apply(self, news: _News, runner: Runner) -> None:
        match news:
            case (record, message):
                # Its job may have ended meanwhile, and another may have its id.
                if not record.ended:
                    self._apply_to_job(message, record, runner)
            case Stop():
                self._stopping = True
            case _Woken():
                for each in list(self._records.values()):
                    if each.opened:
                        self._waiting.setdefault(each.job.id, each)

    def _apply_to_job(self, message: JobMessage, record: _Record, runner: Runner) -> None:
        job = record.job
        if job.cancelled:
            self._end(record, runner, Outcome.CANCELLED)
            return
        if record.overflowed:
            text = f"more than {self._max_inputs} inputs wait for a step"
            self._end(record, runner, Outcome.FAILED, INPUT_OVERFLOW, text)
            return
        match message:
            case Append(payload=payload):
                job.inputs.append(payload)
                record.applied += 1
            case Open(first=first):
                job.input_ended = message.input_ended
                if first is not None:
                    job.inputs.append(first)
                    record.applied += 1
                try:
                    runner.open(job)
                except EngineError as exc:
                    self._end(record, runner, Outcome.FAILED, exc.code, exc.message)
                    return
                record.opened = True
            case Finish():
                job.input_ended = True
            case Grant(credit=credit):
                if job.credit is not None:
                    job.credit += credit
            case Cancel():
                raise AssertionError("a cancelled job is marked before its cancel is applied")
        self._waiting.setdefault(job.id, record)

    def _ready_jobs(self, runner: Runner) -> list[Job]:
        ready = []
        for job_id, record in list(self._waiting.items()):
            job = record.job
            if not runner.ready(job):
                del self._waiting[job_id]
                if job.input_ended and not job.inputs and not self._wakes_itself:
                    self._end(record, runner, Outcome.COMPLETED)
            elif job.credit is not None and job.credit <= 0:
                del self._waiting[job_id]
            else:
                ready.append(job)
        return ready

    def _step(self, batch: Sequence[Job], runner: Runner) -> None:
        started = self._clock.now()
        try:
            steps = runner.step(batch)
        except EngineError as exc:
            steps = [Step(error=exc)] * len(batch)
        duration_s = self._clock.now() - started
        for job, step in zip(batch, steps, strict=True):
            self._take_result(self._records[job.id], step, runner)
        self._flush(duration_s)

    def _take_result(self, record: _Record, step: Step, runner: Runner) -> None:
        job = record.job
        if job.cancelled:
            self.outputs_dropped += len(step.outputs)
            self._end(record, runner, Outcome.CANCELLED)
            return
        if record.reported is not None and (count := record.taken - record.reported):
            record.reported += count
            self._outgoing.append(JobTaken(job.id, count))
        for payload in step.outputs:
            if isinstance(payload, Failure):
                self._end(record, runner, Outcome.FAILED, payload.code, payload.message)
                return
            self._outgoing.append(JobOutput(job.id, payload))
            if job.credit is not None:
                job.credit -= cost(payload)
        if step.error is not None:
            self._end(record, runner, Outcome.FAILED, step.error.code, step.error.message)
        elif step.done:
            self._end(record, runner, Outcome.COMPLETED)
        else:
            self._waiting.pop(job.id, None)
            self._waiting[job.id] = record

    def _end(
        self, record: _Record, runner: Runner, outcome: Outcome, code: str = "", message: str = ""
    ) -> None:
        job = record.job
        record.ended = True
        del self._records[job.id]
        self._waiting.pop(job.id, None)
        if record.opened:
            runner.close(job)
        self._outgoing.append(JobEnded(job.id, outcome, code, message))

    def _flush(self, step_s: float = 0.0) -> None:
        if self._outgoing or step_s:
            self._post(Report(self._outgoing, step_s))
            self._outgoing = []
