"""The replicas of one stage, and the jobs that are placed on them or wait for a slot.

A job goes to the replica with most room, else into a bounded queue. This module must not know
pipelines, nor what a job is part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, EngineError, ReplicaLost
from duologue.engines.executors.base import REPLICA_LOST, Executor, Loss
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.lifecycle_port import STAGE_ASLEEP, STAGE_PAUSED
from duologue.engines.messages import (
    Append,
    Cancel,
    Counted,
    JobEnded,
    JobMessage,
    JobOutput,
    JobReport,
    JobTaken,
    Open,
    Paused,
    Placement,
    Report,
    Rested,
    Share,
    ToWorker,
)
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import StageSpec
from duologue.engines.pools.input_allowance import InputAllowance
from duologue.engines.pools.replica import Replica, ReplicaChange, ReplicaState
from duologue.engines.pools.stage_life import Effect, LifeState, StageLife
from duologue.engines.pools.start_gate import StartGate
from duologue.engines.pools.worker_specs import worker_spec
from duologue.engines.ports import Outcome
from duologue.engines.settings import EngineSettings

_SHORTEST_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0
_ASLEEP_RETRY_S = 30.0
"""Nobody knows when a stage that sleeps, or a pause, will end."""

_SMOOTHING = 0.1


class StageObserver(Protocol):
    """The engine, as its pools see it."""

    def on_job_report(self, stage: str, report: JobReport) -> None:
        """A job produced something, took something, or ended."""
        ...

    def on_overflow(self, stage: str, job: str, error: EngineError) -> None:
        """A job was sent more than may wait for it; what was too much is lost, so it must end."""
        ...

    def on_step(self, stage: str, duration_s: float) -> None:
        """A worker has done a step."""
        ...

    def on_placed(self, stage: str, waited_s: float) -> None:
        """A job got a slot."""
        ...

    def on_counted(self, worker: str, counts: FrameCounts) -> None:
        """A worker has counted what happened to its frames since the last time."""
        ...

    def on_replica_change(self, stage: str, change: ReplicaChange) -> None:
        """A replica is ready, or was lost."""
        ...

    def on_life(self, stage: str, effects: Sequence[Effect]) -> None:
        """Something follows for the life of the stage (``stage_life``)."""
        ...


@dataclass(frozen=True, slots=True)
class StageStats:
    """A look at a pool.

    Args:
        replicas: How many workers there should be; ``ready``: how many there are.
        busy: Slots that are taken; ``queued``: jobs that wait for one.
        restarts: How often a worker was started again.
        slots: Of all workers; ``queue``: places for jobs that wait.
        input_bytes: Input that was sent and that no step has taken, of all jobs; ``input_fill``:
            of the job with most of it, as a share of what it may have.
    """

    stage: str
    replicas: int
    ready: int
    busy: int
    queued: int
    restarts: int
    slots: int
    queue: int
    input_bytes: int
    input_fill: float


@dataclass(slots=True)
class _Queued:
    """A job without a slot, with all that was sent to it so far."""

    since: float
    messages: list[JobMessage]
    allowance: InputAllowance

    def send(self, message: JobMessage) -> None:
        self.messages.append(message)


@dataclass(slots=True)
class _Placed:
    """A job in a slot."""

    since: float
    replica: Replica
    allowance: InputAllowance

    def send(self, message: JobMessage) -> None:
        self.replica.send(message)


class StagePool:
    """The workers of one stage.

    Args:
        key: Name of the stage among all pipelines.
        relays: What its workers make goes on to others, see ``WorkerSpec``.
        placements: Of its workers, where the executor has several machines.
        shares: Of its workers in their devices, where they share any.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        key: str,
        spec: StageSpec,
        executor: Executor,
        observer: StageObserver,
        settings: EngineSettings,
        clock: Clock,
        *,
        relays: bool = False,
        placements: Sequence[Placement] = (),
        gate: StartGate | None = None,
        shares: Sequence[Share | None] = (),
    ) -> None:
        self.key = key
        self._spec = spec
        self._observer = observer
        self._clock = clock
        self.replicas = [
            Replica(
                worker_spec(spec, key, number, placement, relays, share),
                *(executor, self, settings, gate, clock),
            )
            for number, placement, share in zip_longest(range(spec.replicas), placements, shares)
        ]
        self._placed: dict[str, _Placed] = {}
        self._queued: dict[str, _Queued] = {}
        self.life = StageLife(
            [replica.name for replica in self.replicas],
            busy=lambda: bool(self._placed),
            waiting=lambda: bool(self._queued),
        )
        self._mean_job_s = _SHORTEST_RETRY_S

    def check_room(self, first: Payload | None = None) -> None:
        """Do nothing if ``open`` would succeed now.

        Args:
            first: The input that the job would begin with.

        Raises:
            CapacityError: All slots are taken and so is the queue; or the stage sleeps, or is
                paused.
            ReplicaLost: No replica runs, and the last attempts to start one failed.
            EngineError: ``first`` is larger than all that may wait for a job.
        """
        if first is not None:
            InputAllowance(self._spec.max_input_bytes).add(first)
        self._check_life()
        dead = (ReplicaState.FAILING, ReplicaState.STOPPED)
        if all(replica.state in dead for replica in self.replicas):
            raise ReplicaLost(f"no worker of the stage {self.key} is alive; its log says why")
        if self._roomiest() is None and self._waiting_for_others() >= self._spec.queue:
            if self.life.paused:
                raise self._resting("is paused, and its queue is full", STAGE_PAUSED)
            slots = self.slots
            raise CapacityError(
                f"stage {self.key}: {slots} of {slots} slots are taken, and all "
                f"{self._spec.queue} places in the queue",
                retry_after_s=self._expected_wait_s(),
            )

    def open(self, message: Open) -> None:
        """Place a job, or let it wait. ``check_room`` must have passed in this turn of the loop."""
        allowance = InputAllowance(self._spec.max_input_bytes)
        if message.first is not None:
            allowance.add(message.first)
        queued = _Queued(self._clock.now(), [message], allowance)
        replica = self._roomiest() if not self._queued else None
        if replica is not None:
            self._place(message.job, queued, replica)
            return
        self._queued[message.job] = queued
        if self.life.state is LifeState.ASLEEP:
            self._live(self.life.wake())

    def tell(self, replica: str, message: ToWorker) -> None:
        """Send a replica what concerns no job."""
        self._replica(replica).send(message)

    def kill(self, replica: str) -> None:
        """Be rid of a replica's worker, which does not answer."""
        self._replica(replica).kill()

    def jobs(self, *, running: bool, queued: bool) -> list[str]:
        """Return the jobs that have a slot, and those that wait for one."""
        return [*(self._placed if running else ()), *(self._queued if queued else ())]

    def fill(self) -> None:
        """Place what waits, where work may begin."""
        while self._queued and (replica := self._roomiest()) is not None:
            job = next(iter(self._queued))
            self._place(job, self._queued.pop(job), replica)

    def send(self, message: JobMessage) -> None:
        """Send to a job, wherever it is. One that has ended is no error: its end crossed this."""
        placed = self._placed.get(message.job)
        job = placed or self._queued.get(message.job)
        if job is None:
            return
        if isinstance(message, Append):
            try:
                job.allowance.add(message.payload)
            except EngineError as exc:
                self._observer.on_overflow(self.key, message.job, exc)
                return
        elif isinstance(message, Cancel):
            if placed is None:
                self._end(message.job, Outcome.CANCELLED)
                self._look_idle()
                return
            placed.replica.unanswered.add(message.job)
        job.send(message)

    @property
    def slots(self) -> int:
        """How many jobs all workers take; fewer than was set, where they cannot do so many."""
        return sum(self._most(replica) for replica in self.replicas)

    def kill_worker_of(self, job: str) -> None:
        """Be rid of the worker that holds a job and does not answer."""
        placed = self._placed.get(job)
        if placed is not None:
            placed.replica.kill()

    def stats(self) -> StageStats:
        """Take a look."""
        jobs: list[_Placed | _Queued] = [*self._placed.values(), *self._queued.values()]
        waiting = [job.allowance.waiting_bytes for job in jobs]
        return StageStats(
            stage=self.key,
            replicas=len(self.replicas),
            ready=sum(replica.state is ReplicaState.READY for replica in self.replicas),
            busy=len(self._placed),
            queued=len(self._queued),
            restarts=sum(replica.restarts for replica in self.replicas),
            slots=self.slots,
            queue=self._spec.queue,
            input_bytes=sum(waiting),
            input_fill=max(waiting, default=0) / self._spec.max_input_bytes,
        )

    def on_report(self, replica: Replica, report: Report) -> None:
        """Pass on what a worker said; a slot that it frees is taken again first."""
        if report.step_s:
            self._observer.on_step(self.key, report.step_s)
        for message in report.messages:
            match message:
                case Counted(counts=counts):
                    self._observer.on_counted(replica.name, counts)
                case JobOutput():
                    self._observer.on_job_report(self.key, message)
                case JobTaken(job=job, size_bytes=size_bytes) if job in replica.jobs:
                    self._placed[job].allowance.take(size_bytes)
                    self._observer.on_job_report(self.key, message)
                case JobEnded(job=job) if job in replica.jobs:
                    self._release(job)
                    self._observer.on_job_report(self.key, message)
                    self._look_idle()
                case Rested(holds=holds):
                    replica.holds = replica.holds if holds is None else holds
                    self._live(self.life.on_rested(replica.name, message))
                case Paused():
                    self._live(self.life.on_held(replica.name))
                case _:
                    # News of the replica, which has taken it, or of a job that has ended here:
                    # a correct worker says nothing after a job's end.
                    pass

    def on_change(self, replica: Replica, change: ReplicaChange) -> None:
        """Place what waits on a new worker, or end what a lost one held."""
        if change.state is ReplicaState.READY:
            self._live(self.life.on_ready(replica.name, change.level))
            self.fill()
        elif change.loss is not None:
            self._end_all(list(replica.jobs), change.loss)
            if all(each.state is ReplicaState.FAILING for each in self.replicas):
                self._end_all(list(self._queued), change.loss)
            again = change.state is ReplicaState.FAILING
            self._live(self.life.on_lost(replica.name, again=again))
            self._look_idle()
        self._observer.on_replica_change(self.key, change)

    def starts_asleep(self, replica: Replica) -> bool:
        """Tell whether a worker that is started now need not load anything."""
        return self.life.starts_asleep(replica.name)

    def _check_life(self) -> None:
        life = self.life
        if life.paused and life.refuses_queue:
            raise self._resting("is paused", STAGE_PAUSED)
        if life.state is LifeState.AWAKE:
            return
        comes = life.state in (LifeState.ASLEEP, LifeState.WAKING)
        if not (comes and self._spec.wake_on_request):
            raise self._resting(f"is {life.shown.replace('_', ' ')}", STAGE_ASLEEP)

    def _resting(self, how: str, code: str) -> CapacityError:
        return CapacityError(f"the stage {self.key} {how}", code=code, retry_after_s=self._rest_s())

    def _rest_s(self) -> float:
        """How long a rest may last: a start, where it is over soon."""
        took_s = max(each.timeline.took_s for each in self.replicas)
        if self.life.state is LifeState.WAKING:
            return min(max(took_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)
        return _ASLEEP_RETRY_S

    def _live(self, effects: Sequence[Effect]) -> None:
        if effects:
            self._observer.on_life(self.key, effects)

    def _look_idle(self) -> None:
        if self.life.draining or self.life.pausing:
            self._live(self.life.on_idle())

    def _replica(self, name: str) -> Replica:
        return next(each for each in self.replicas if each.name == name)

    def _end_all(self, jobs: Iterable[str], loss: Loss) -> None:
        for job in jobs:
            self._release(job)
            self._end(job, Outcome.FAILED, REPLICA_LOST, f"{loss.code}: {loss.reason}")

    def _end(self, job: str, outcome: Outcome, code: str = "", message: str = "") -> None:
        self._queued.pop(job, None)
        self._observer.on_job_report(self.key, JobEnded(job, outcome, code, message))

    def _most(self, replica: Replica) -> int:
        most = self._spec.max_jobs
        return most if replica.holds is None else min(most, replica.holds)

    def _room(self, replica: Replica) -> int:
        most = self._most(replica)
        if replica.holds is not None:
            # A call that begins anew has two jobs, the old one of which has not ended yet.
            most = min(self._spec.max_jobs, most + len(replica.unanswered))
        return most - len(replica.jobs)

    def _roomiest(self) -> Replica | None:
        if not self.life.takes_work:
            return None
        best = max(
            (each for each in self.replicas if each.takes_jobs and not self._level(each)),
            key=self._room,
            default=None,
        )
        return best if best is not None and self._room(best) > 0 else None

    def _waiting_for_others(self) -> int:
        """How many wait for the end of another job, rather than for a worker to take jobs again."""
        free_soon = sum(
            self._room(each) for each in self.replicas if each.will_take_jobs or self._level(each)
        )
        return len(self._queued) - (0 if self.life.paused else free_soon)

    def _level(self, replica: Replica) -> int:
        return self.life.level_of(replica.name)

    def _place(self, job: str, queued: _Queued, replica: Replica) -> None:
        now = self._clock.now()
        replica.jobs.add(job)
        self._placed[job] = _Placed(now, replica, queued.allowance)
        for message in queued.messages:
            replica.send(message)
        self._observer.on_placed(self.key, now - queued.since)

    def _release(self, job: str) -> None:
        placed = self._placed.pop(job, None)
        if placed is None:
            return
        placed.replica.jobs.discard(job)
        placed.replica.unanswered.discard(job)
        self._mean_job_s += _SMOOTHING * (self._clock.now() - placed.since - self._mean_job_s)
        self.fill()

    def _expected_wait_s(self) -> float:
        expected_s = self._mean_job_s * (len(self._queued) + 1) / self.slots
        return min(max(expected_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)
