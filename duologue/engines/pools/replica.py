"""One worker of a stage, kept alive: started, watched, and started again when it is lost.

This module must not know how jobs are placed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec
import structlog

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import EngineError
from duologue.engines.executors.base import REPLICA_LOST, Executor, Loss, Worker
from duologue.engines.messages import Begun, Ready, Report, Stop, ToWorker, WorkerSpec
from duologue.engines.pools.start_gate import StartGate
from duologue.engines.pools.start_report import SPAWN, StartTimeline
from duologue.engines.settings import EngineSettings

log = structlog.get_logger(__name__)


class ReplicaState(Enum):
    """Where a replica is in its life."""

    STARTING = "starting"
    """Being started, or about to be started again after a loss."""

    READY = "ready"

    FAILING = "failing"
    """The last attempt to start it failed; another follows."""

    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """News of a replica.

    Args:
        took_s: How long loading and warming up took, when READY.
        level: At which it sleeps, when READY; 0: it is awake.
        loss: Why it was lost, when it was; ``phase``: in which phase of its start, if in any.
    """

    name: str
    state: ReplicaState
    took_s: float = 0.0
    level: int = 0
    loss: Loss | None = None
    phase: str = ""


class ReplicaOwner(Protocol):
    """The pool, as its replicas see it."""

    def on_report(self, replica: Replica, report: Report) -> None:
        """A worker said something other than that it is ready."""
        ...

    def starts_asleep(self, replica: Replica) -> bool:
        """Tell whether a worker that is started now need not load anything."""
        ...

    def on_change(self, replica: Replica, change: ReplicaChange) -> None:
        """The replica has another state."""
        ...


class _Life:
    """Hears from one worker, from its start to its loss, or until its start is given up.

    What an executor still has to say of it after that would be taken for news of the next one.
    """

    def __init__(
        self, on_report: Callable[[Report], None], on_lost: Callable[[Loss], None]
    ) -> None:
        self._on_report = on_report
        self._on_lost = on_lost
        self._over = False

    def on_report(self, report: Report) -> None:
        if not self._over:
            self._on_report(report)

    def on_lost(self, loss: Loss) -> None:
        if not self._over:
            self._over = True
            self._on_lost(loss)


class Replica:
    """A slot-holder that survives its workers.

    The pool keeps in it which jobs are placed here, and which of these were cancelled without an
    answer so far.

    Concurrency:
        Belongs to the event loop; ``run`` is a child of the engine's task group.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        executor: Executor,
        owner: ReplicaOwner,
        settings: EngineSettings,
        gate: StartGate | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = spec.name
        self.state = ReplicaState.STARTING
        self.jobs: set[str] = set()
        self.unanswered: set[str] = set()
        self.restarts = 0
        self.holds: int | None = None
        """As many jobs as its worker can do in time, if that has found out."""
        self.had_to_be_killed = False
        self._spec = spec
        self._executor = executor
        self._owner = owner
        self._settings = settings
        self._worker: Worker | None = None
        self._warm = asyncio.Event()
        self._gone = asyncio.Event()
        self._failures = 0
        self._stopping = False
        self.timeline = StartTimeline()
        self._gate = gate or StartGate()
        self._now = (clock or SystemClock()).now

    @property
    def takes_jobs(self) -> bool:
        """It is ready, and has answered every cancel.

        One that has not is in the midst of a step, so a new job gains nothing by waiting there;
        and if it hangs, the job would be lost with it.
        """
        return self.state is ReplicaState.READY and not self.unanswered

    @property
    def will_take_jobs(self) -> bool:
        """It takes none now, but soon: it starts, or finishes a step."""
        starting = self.state is ReplicaState.STARTING
        return starting or (self.state is ReplicaState.READY and bool(self.unanswered))

    def send(self, message: ToWorker) -> None:
        """Send to the worker; while there is none, its jobs are lost anyway."""
        if self._worker is not None:
            self._worker.send(message)

    def kill(self) -> None:
        """Be rid of the present worker, which hangs; another is started."""
        if self._worker is not None:
            self._worker.kill()

    async def run(self) -> None:
        """Keep a worker alive until ``stop``."""
        while not self._stopping:
            await self._run_worker()
            if not self._stopping:
                await asyncio.sleep(self.backoff_s(self._failures))
                self.restarts += 1

    async def stop(self, timeout_s: float) -> None:
        """Ask the worker to leave; kill it if it does not, or if it is not even warm."""
        self._stopping = True
        worker = self._worker
        if worker is None:
            return
        if self.state is not ReplicaState.READY:
            worker.kill()
            await self._gone.wait()
            return
        worker.send(Stop())
        try:
            async with asyncio.timeout(timeout_s):
                await self._gone.wait()
        except TimeoutError:
            self.had_to_be_killed = True
            worker.kill()
            await self._gone.wait()

    def backoff_s(self, failures: int) -> float:
        """How long to wait before the next start, after so many failures in a row."""
        # Beyond 2**30 the limit has long been reached.
        longer_s = self._settings.restart_backoff_s * 2 ** min(failures, 30)
        return float(min(longer_s, self._settings.restart_backoff_max_s))

    async def _run_worker(self) -> None:
        self._warm.clear()
        self._gone.clear()
        self.timeline.begin(self._now())
        async with self._gate.turn():
            self.timeline.enter(SPAWN, self._now())
            await self._start_worker()
        await self._gone.wait()

    async def _start_worker(self) -> None:
        """Start a worker; returns when it is ready or lost."""
        timeout_s = self._settings.start_timeout_s
        life = _Life(self._on_report, self._on_lost)
        spec = self._spec
        if self._owner.starts_asleep(self):
            spec = msgspec.structs.replace(spec, asleep=True)
        try:
            async with asyncio.timeout(timeout_s):
                self._worker = await self._executor.start(spec, life)
                await self._warm.wait()
        except EngineError as exc:
            life.on_lost(Loss(exc.code, exc.message))
        except TimeoutError:
            log.error("worker_not_ready", worker=self.name, limit_s=timeout_s)
            if self._worker is None:
                life.on_lost(Loss(REPLICA_LOST, f"it did not start within {timeout_s:g} s"))
            self.kill()

    def _on_report(self, report: Report) -> None:
        if self.state is not ReplicaState.READY:
            match report.messages:
                case [Begun(phase=phase)]:
                    self.timeline.enter(phase, self._now())
                    return
                case [Ready(took_s=took_s, level=level, holds=holds), *_]:
                    self._warm.set()
                    self.holds = holds
                    self.timeline.end(self._now())
                    log.info("worker_ready", worker=self.name, took_s=round(took_s, 3))
                    ready = ReplicaState.READY
                    self._change(ReplicaChange(self.name, ready, took_s=took_s, level=level))
                    return
                case _:
                    pass
        self._owner.on_report(self, report)

    def _on_lost(self, loss: Loss) -> None:
        was_ready = self.state is ReplicaState.READY
        self._worker = None
        self._failures = 0 if was_ready else self._failures + 1
        self._warm.set()
        self._gone.set()
        if self._stopping:
            state = ReplicaState.STOPPED
        else:
            state = ReplicaState.FAILING if self._failures else ReplicaState.STARTING
            log.error("worker_lost", worker=self.name, code=loss.code, reason=loss.reason)
        phase = self.timeline.phase
        self.timeline.end(self._now())
        self._change(ReplicaChange(self.name, state, loss=loss, phase=phase))

    def _change(self, change: ReplicaChange) -> None:
        self.state = change.state
        self._owner.on_change(self, change)
