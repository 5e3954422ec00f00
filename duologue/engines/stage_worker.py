"""The loop around one runner: messages in, steps, reports out.

It runs in a thread of its own, in whatever process the executor chose, and sleeps while no job
can be stepped. It must not know executors, pipelines or requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from duologue.core.clock import Clock
from duologue.core.errors import EngineError, OutOfMemory
from duologue.engines.arbiter.turns import MEMORY_RETRY_S, Refused, Turns, Unshared
from duologue.engines.frame_counts import NO_FRAMES
from duologue.engines.lifecycle_port import IN_TRANSITION, STAGE_ASLEEP
from duologue.engines.messages import (
    Append,
    Begun,
    Cancel,
    Counted,
    Finish,
    FromWorker,
    Grant,
    JobEnded,
    JobMessage,
    JobOutput,
    JobTaken,
    OfWorker,
    Open,
    Pause,
    Paused,
    Ready,
    Report,
    Rested,
    Sleep,
    Stop,
    ToWorker,
    Wake,
)
from duologue.engines.payloads import Payload
from duologue.engines.ports import Outcome
from duologue.engines.runners.contract import CountsFrames, Job, Runner, Step
from duologue.engines.schedulers.base import Scheduler
from duologue.engines.worker_inbox import WorkerInbox
from duologue.engines.worker_model import Load, WorkerModel

TELL_BYTES = 16 * 1024
"""Of what its steps took a job tells when it is so much: with every frame of audio it would
cost the engine more than half as much again. The least that may wait is four times as much."""


COUNT_EVERY_S = 1.0
"""How often a runner with a beat of its own tells what it has counted."""


class _Woken:
    """The runner says that jobs may have become ready."""


_WOKEN: Final = _Woken()


@dataclass(eq=False, slots=True)
class _Record:
    """A job with what the worker itself must know of it.

    Args:
        sizes: Of the inputs handed to the job, those that no step had taken when last seen.
        taken: Inputs that were taken and ``JobTaken`` has not told of; ``taken_bytes``: their size.
        taken_at_once: It must tell of them at once.
    """

    job: Job
    taken_at_once: bool
    sizes: deque[int] = field(default_factory=deque)
    taken: int = 0
    taken_bytes: int = 0
    opened: bool = False
    ended: bool = False

    def give(self, payload: Payload) -> None:
        """Hand an input to the job."""
        self.job.inputs.append(payload)
        self.sizes.append(payload.size_bytes())

    def take_report(self) -> JobTaken | None:
        """See what a step took, and return what there is to tell of it."""
        while len(self.sizes) > len(self.job.inputs):
            self.taken += 1
            self.taken_bytes += self.sizes.popleft()
        if not self.taken or (self.taken_bytes < TELL_BYTES and not self.taken_at_once):
            return None
        report = JobTaken(self.job.id, self.taken, self.taken_bytes)
        self.taken = self.taken_bytes = 0
        return report


_News = tuple[_Record, JobMessage] | OfWorker | _Woken


class StageWorker:
    """One runner and its jobs.

    Args:
        load: Makes the runner. Called in ``run``, hence in the working thread.
        asleep: Nothing is loaded before ``Wake``.
        schedule: Makes the scheduler from the runner's ``max_batch``.
        post: Takes reports; called in the working thread. May wait, which slows the steps.
        share: Makes the worker's part in its device, where it shares one.

    Concurrency:
        ``run`` owns everything, but for what ``receive`` does from one other thread: it enters
        new jobs into the table, from which only ``run`` takes them, and marks cancelled ones.
        ``wake`` may come from any thread. What waits for ``run`` is bounded for each job by the
        engine, see ``pools``; to wake it is said once until it looks.
    """

    def __init__(
        self,
        *,
        load: Load,
        schedule: Callable[[int], Scheduler],
        post: Callable[[Report], None],
        clock: Clock,
        asleep: bool = False,
        share: Callable[[Runner], Turns] = lambda _runner: Unshared(),
    ) -> None:
        self._schedule = schedule
        self._post = post
        self._clock = clock
        self._starts_asleep = asleep
        self._model = WorkerModel(load, self.wake, self._announce, clock, share=share)
        self._scheduler: Scheduler | None = None
        self._inbox: WorkerInbox[_News] = WorkerInbox()
        self._wake_due = False
        self._records: dict[str, _Record] = {}
        # In the order in which they began to wait for a step. Jobs that cannot be stepped are
        # not in it until news of them comes, so a step costs nothing for idle jobs.
        self._waiting: dict[str, _Record] = {}
        self._outgoing: list[FromWorker] = []
        self._stopping = False
        self._holds_work = False
        self._beat: CountsFrames | None = None
        self._counts = NO_FRAMES
        self._counted_at = -COUNT_EVERY_S

    def receive(self, messages: Iterable[ToWorker]) -> None:
        """Take messages, in order. A cancel takes effect at once, in the midst of a step."""
        news: list[_News] = []
        for message in messages:
            if isinstance(message, OfWorker):
                news.append(message)
                continue
            record = self._record_of(message)
            if record is not None:
                news.append((record, message))
        self._inbox.put(news)

    def wake(self) -> None:
        """Look again which jobs are ready."""
        if not self._wake_due:
            self._wake_due = True
            self._inbox.put((_WOKEN,))

    def run(self) -> None:
        """Load and warm the runner, then work until told to stop.

        Raises:
            DuologueError: The runner cannot be loaded.
        """
        started = self._clock.now()
        model = self._model
        if not self._starts_asleep:
            model.load()
        self._outgoing.append(Ready(self._clock.now() - started, model.level, self._holds()))
        timeout_s: float | None = 0.0
        while True:
            self._flush()
            if self._beat is not None:
                self._count(self._beat)
            for news in self._inbox.take(timeout_s):
                self._apply(news)
            if self._stopping:
                break
            timeout_s = self._step_or_wait()
        for record in list(self._records.values()):
            self._end(record, Outcome.CANCELLED)
        self._flush()

    @property
    def _runner(self) -> Runner:
        """The one that is awake. No variable may hold it when it is told to sleep."""
        runner = self._model.runner
        assert runner is not None, "a worker that sleeps has no jobs"
        return runner

    def _announce(self, phase: str) -> None:
        self._post(Report([Begun(phase)]))

    def _step_or_wait(self) -> float | None:
        """Step what may be stepped; returns how long to wait for news, ``None``: until there is."""
        if self._model.level or self._holds_work:
            return None
        if self._scheduler is None:
            self._scheduler = self._schedule(self._runner.max_batch)
        turns = self._model.turns
        ready = self._ready_jobs()
        now = self._clock.now()
        admitted, refused = turns.admitted(ready, now)
        self._refuse(refused)
        choice = self._scheduler.next_batch(admitted, now)
        if not choice.batch:
            turns.idle()
            if len(admitted) + len(refused) < len(ready):
                return MEMORY_RETRY_S
            return None if choice.wake_at is None else max(0.0, choice.wake_at - now)
        again_at = turns.wait_until(choice.batch, now)
        if again_at is not None:
            return max(0.0, again_at - now)
        self._step(choice.batch)
        return 0.0

    def _refuse(self, refused: Sequence[Refused]) -> None:
        for job, error in refused:
            record = self._records.get(job.id)
            if record is not None and record.job is job:
                self._end(record, Outcome.FAILED, error)

    def _rest(self, message: Sleep | Wake) -> Rested:
        model = self._model
        if isinstance(message, Wake):
            rested = model.wake()
            return msgspec.structs.replace(rested, holds=self._holds())
        if self._records:
            text = f"{len(self._records)} jobs are open"
            return Rested(model.level, code=IN_TRANSITION, message=text)
        self._scheduler = self._beat = None
        self._waiting.clear()
        rested = model.sleep(message.level)
        if not rested.level:
            self._holds()  # it could not, and is as it was
        return rested

    def _holds(self) -> int | None:
        """Look whether the runner keeps a beat, and how many jobs it holds then."""
        runner: object = self._model.runner
        if not isinstance(runner, CountsFrames):
            return None
        self._beat = runner
        # What it has counted before it slept was told; another one begins anew.
        self._counts = runner.counted()
        return runner.holds

    def _count(self, beat: CountsFrames) -> None:
        """Tell what has been counted, now and then, and at once when the last job has ended."""
        now = self._clock.now()
        if self._records and now - self._counted_at < COUNT_EVERY_S:
            return
        counts = beat.counted()
        if counts != self._counts:
            self._outgoing.append(Counted(counts.since(self._counts)))
            self._counts, self._counted_at = counts, now
            self._flush()

    def _record_of(self, message: JobMessage) -> _Record | None:
        """Find or make the record of a message; ``None`` where its job has ended."""
        if isinstance(message, Open):
            record = self._records[message.job] = _Record(
                Job(id=message.job, credit=message.credit), message.taken_at_once
            )
            return record
        found = self._records.get(message.job)
        if found is not None and isinstance(message, Cancel):
            found.job.cancelled = True
        return found

    def _apply(self, news: _News) -> None:
        match news:
            case (record, message):
                # Its job may have ended meanwhile, and another may have its id.
                if not record.ended:
                    self._apply_to_job(message, record)
            case Stop():
                self._stopping = True
            case Sleep() | Wake():
                self._outgoing.append(self._rest(news))
            case Pause(on=on):
                self._holds_work = on
                if on:
                    self._model.turns.idle()
                    self._outgoing.append(Paused())
            case _Woken():
                self._wake_due = False  # first: what happens from here on is said anew
                for each in list(self._records.values()):
                    if each.opened:
                        self._waiting.setdefault(each.job.id, each)

    def _apply_to_job(self, message: JobMessage, record: _Record) -> None:
        job = record.job
        if job.cancelled:
            self._end(record, Outcome.CANCELLED)
            return
        if self._model.level:
            asleep = EngineError("the model sleeps", code=STAGE_ASLEEP)
            self._end(record, Outcome.FAILED, asleep)
            return
        match message:
            case Append(payload=payload):
                record.give(payload)
            case Open(first=first):
                job.input_ended = message.input_ended
                if first is not None:
                    record.give(first)
                try:
                    self._runner.open(job)
                except EngineError as exc:
                    self._end(record, Outcome.FAILED, exc)
                    return
                except MemoryError:
                    self._end(record, Outcome.FAILED, _no_memory("to open a job"))
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

    def _ready_jobs(self) -> list[Job]:
        runner = self._runner
        ready = []
        for job_id, record in list(self._waiting.items()):
            job = record.job
            if not runner.ready(job):
                del self._waiting[job_id]
                if job.input_ended and not job.inputs and not self._model.wakes_itself:
                    self._end(record, Outcome.COMPLETED)
            elif job.credit is not None and job.credit <= 0:
                del self._waiting[job_id]
            else:
                ready.append(job)
        return ready

    def _step(self, batch: Sequence[Job]) -> None:
        started = self._clock.now()
        try:
            steps = self._runner.step(batch)
        except EngineError as exc:
            steps = [Step(error=exc)] * len(batch)
        except MemoryError:
            # A step that broke off half-way cannot be run again: outputs of some of its jobs may
            # be lost. What they held is let go with them, so the next ones may find room.
            steps = [Step(error=_no_memory(f"for a step of {len(batch)} jobs"))] * len(batch)
        now = self._clock.now()
        too_long = self._model.turns.stepped(batch, now)
        for job, step in zip(batch, steps, strict=True):
            self._take_result(self._records[job.id], step)
        self._refuse(too_long)
        self._flush(now - started)

    def _take_result(self, record: _Record, step: Step) -> None:
        job = record.job
        if job.cancelled:
            self._end(record, Outcome.CANCELLED)
            return
        for payload in step.outputs:
            self._outgoing.append(JobOutput(job.id, payload))
            if job.credit is not None:
                job.credit -= payload.cost()
        if step.error is not None:
            self._end(record, Outcome.FAILED, step.error)
        elif step.done:
            self._end(record, Outcome.COMPLETED)
        else:
            if taken := record.take_report():
                self._outgoing.append(taken)
            self._waiting.pop(job.id, None)
            self._waiting[job.id] = record

    def _end(self, record: _Record, outcome: Outcome, error: EngineError | None = None) -> None:
        job = record.job
        record.ended = True
        del self._records[job.id]
        self._waiting.pop(job.id, None)
        if record.opened:
            self._runner.close(job)
        self._model.turns.over(job)
        if error is None:
            self._outgoing.append(JobEnded(job.id, outcome))
        else:
            self._outgoing.append(JobEnded(job.id, outcome, error.code, error.message, error.quote))

    def _flush(self, step_s: float = 0.0) -> None:
        if self._outgoing or step_s:
            self._post(Report(self._outgoing, step_s))
            self._outgoing = []


def _no_memory(what_for: str) -> OutOfMemory:
    return OutOfMemory(f"no memory was left {what_for}")
