"""Carries out what is ordered of stages: lets them sleep, wakes them, holds and releases work.

A shell around ``stage_life``: it owns the timers and those who wait for a transition, and moves
effects to pools. It must not know requests or models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from duologue.core.errors import EngineError, ProtocolError
from duologue.core.ids import IdMaker, id_maker
from duologue.engines.lifecycle_port import (
    SLEEP_UNSUPPORTED,
    STAGE_UNKNOWN,
    AckStatus,
    EngineLook,
    Order,
    PauseStages,
    ReplicaLook,
    ResumeStages,
    SleepStages,
    StageAck,
    StageLook,
    WakeStages,
)
from duologue.engines.pools.stage_life import (
    Ack,
    Effect,
    EndJobs,
    Fill,
    Finished,
    Kill,
    StageLife,
    Tell,
    Transition,
)
from duologue.engines.pools.stage_pool import StagePool
from duologue.engines.pools.start_report import StartReport
from duologue.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

EndJob = Callable[[str, str, EngineError], None]
"""Ends the request that a job at a stage is part of."""


@dataclass(eq=False, slots=True)
class _Running:
    """A transition of a stage, and who waits for its end."""

    task_id: str
    waiters: list[asyncio.Future[list[StageAck]]] = field(default_factory=list)


@dataclass(slots=True)
class _Timers:
    """Of one stage: for work that ends, and for replicas that were told."""

    overdue: asyncio.TimerHandle | None = None
    told: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        for timer in (self.overdue, self.told):
            if timer is not None:
                timer.cancel()
        self.overdue = self.told = None


class Lifecycle:
    """Implements ``LifecyclePort`` for the pools of an engine.

    Args:
        pools: By the names of their stages.
        end_job: Aborts work.
        answer_s: Time in which a worker must have slept or woken; then it is killed.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        pools: Mapping[str, StagePool],
        end_job: EndJob,
        metrics: Metrics,
        answer_s: float,
        new_id: IdMaker | None = None,
    ) -> None:
        self.start_report = StartReport(0.0, 0.0, [])
        """How the workers started; empty until they have."""
        self._pools = pools
        self._end_job = end_job
        self._metrics = metrics
        self._answer_s = answer_s
        self._new_id = new_id or id_maker()
        self._running: dict[tuple[str, Transition], _Running] = {}
        self._timers = {stage: _Timers() for stage in pools}

    async def sleep(self, order: SleepStages | None = None) -> list[StageAck]:
        """Let memory go, as ``carry_out``."""
        return await self.carry_out(order or SleepStages())

    async def wake(self, order: WakeStages | None = None) -> list[StageAck]:
        """Be ready for work again, as ``carry_out``."""
        return await self.carry_out(order or WakeStages())

    async def pause(self, order: PauseStages | None = None) -> list[StageAck]:
        """Begin no work, as ``carry_out``."""
        return await self.carry_out(order or PauseStages())

    async def resume(self, order: ResumeStages | None = None) -> list[StageAck]:
        """Begin work again, as ``carry_out``."""
        return await self.carry_out(order or ResumeStages())

    async def carry_out(self, order: Order) -> list[StageAck]:
        """Carry an order out at each of its stages, side by side.

        Raises:
            ClientError: There is no such stage; nothing was done.
            EngineError: The engine stopped meanwhile.
        """
        waiters = [self._begin(stage, order) for stage in self._named(order.stage_ids)]
        acks = [ack for waiter in waiters for ack in await waiter]
        return acks if order.stage_ids is not None else [_lenient(ack) for ack in acks]

    async def look(self) -> list[EngineLook]:
        """Return what all stages look like."""
        stages = [self._look(number, stage) for number, stage in enumerate(self._pools)]
        return [EngineLook(stages=stages, start=self.start_report)]

    def resting(self) -> tuple[list[str], list[str]]:
        """Return the stages that take no work since they sleep, and those that are paused."""
        lives = {stage: pool.life for stage, pool in self._pools.items()}
        asleep = [stage for stage, life in lives.items() if life.shown not in _WORKING]
        return asleep, [stage for stage, life in lives.items() if life.paused]

    def perform(self, stage: str, effects: Sequence[Effect]) -> None:
        """Do what follows for a stage."""
        pool = self._pools[stage]
        for effect in effects:
            match effect:
                case Tell(replica=replica, message=message):
                    pool.tell(replica, message)
                case Kill(replica=replica):
                    pool.kill(replica)
                case EndJobs(code=code):
                    error = EngineError(f"the stage {stage} takes a rest", code=code)
                    for job in pool.jobs(running=effect.running, queued=effect.queued):
                        self._end_job(stage, job, error)
                    self.perform(stage, pool.life.on_idle())
                case Fill():
                    pool.fill()
                case Finished():
                    self._finish(stage, effect)
        self._set_timers(stage, pool.life)

    def stop(self) -> None:
        """Wait for nothing any more: the engine stops."""
        for timers in self._timers.values():
            timers.cancel()
        running, self._running = self._running, {}
        for each in running.values():
            for waiter in each.waiters:
                if not waiter.done():
                    waiter.set_exception(EngineError("the engine stops"))

    def _named(self, stage_ids: Sequence[str | int] | None) -> list[str]:
        names = list(self._pools)
        if stage_ids is None:
            return names
        chosen: dict[str, None] = {}
        for given in stage_ids:
            if isinstance(given, int) and 0 <= given < len(names):
                chosen[names[given]] = None
            elif given in self._pools:
                chosen[str(given)] = None
            else:
                raise ProtocolError(
                    f"there is no stage {given!r}; there are {', '.join(names)}",
                    code=STAGE_UNKNOWN,
                    param="stage_ids",
                )
        return list(chosen)

    def _begin(self, stage: str, order: Order) -> asyncio.Future[list[StageAck]]:
        life = self._pools[stage].life
        key = stage, _transition(order)
        running = self._running.setdefault(key, _Running(self._new_id("task")))
        waiter: asyncio.Future[list[StageAck]] = asyncio.get_running_loop().create_future()
        running.waiters.append(waiter)
        self.perform(stage, _ordered(life, order))
        timeout_s = None
        if isinstance(order, SleepStages | PauseStages) and order.mode != "keep":
            timeout_s = order.timeout_s
        if timeout_s is not None and (life.draining or life.pausing):
            timers = self._timers[stage]
            if timers.overdue is not None:
                timers.overdue.cancel()
            loop = asyncio.get_running_loop()
            timers.overdue = loop.call_later(timeout_s, self._on_overdue, stage)
        return waiter

    def _finish(self, stage: str, finished: Finished) -> None:
        transition = finished.transition
        running = self._running.pop((stage, transition), None)
        task_id = running.task_id if running is not None else self._new_id("task")
        acks = [_stage_ack(task_id, stage, ack) for ack in finished.acks]
        self._note(stage, finished, acks)
        for waiter in running.waiters if running is not None else ():
            if not waiter.done():
                waiter.set_result(acks)

    def _note(self, stage: str, finished: Finished, acks: Sequence[StageAck]) -> None:
        life, metrics = self._pools[stage].life, self._metrics
        metrics.stage_asleep[stage].set(life.level)
        metrics.stage_paused[stage].set(int(life.paused))
        if all(ack.skipped for ack in finished.acks):
            return
        outcome = f"{finished.transition}_failed" if finished.failed else finished.transition
        metrics.stage_transitions[stage, outcome].inc()
        freed_bytes = sum(ack.freed_bytes + ack.device_freed_bytes for ack in acks)
        if finished.transition == "sleep":
            metrics.stage_freed[stage].set(freed_bytes)
        for ack in finished.acks:
            if ack.code:
                log.warning(
                    "stage_transition_failed",
                    stage=stage,
                    transition=finished.transition,
                    worker=ack.replica,
                    code=ack.code,
                    reason=ack.reason,
                )
        log.info(
            "stage_transition",
            stage=stage,
            transition=finished.transition,
            state=life.shown,
            freed_bytes=freed_bytes,
        )

    def _set_timers(self, stage: str, life: StageLife) -> None:
        timers = self._timers[stage]
        if timers.overdue is not None and not (life.draining or life.pausing):
            timers.overdue.cancel()
            timers.overdue = None
        if life.answers_due and timers.told is None:
            loop = asyncio.get_running_loop()
            timers.told = loop.call_later(self._answer_s, self._on_timeout, stage)
        elif timers.told is not None and not life.answers_due:
            timers.told.cancel()
            timers.told = None

    def _on_overdue(self, stage: str) -> None:
        self._timers[stage].overdue = None
        self.perform(stage, self._pools[stage].life.on_overdue())

    def _on_timeout(self, stage: str) -> None:
        self._timers[stage].told = None
        self.perform(stage, self._pools[stage].life.on_timeout())

    def _look(self, number: int, stage: str) -> StageLook:
        pool = self._pools[stage]
        life = pool.life
        failed, error = life.failure or ("", "")
        return StageLook(
            stage_id=stage,
            number=number,
            state=life.shown,
            paused=life.paused,
            kept=life.held.wanted,
            level=life.level,
            running=len(pool.jobs(running=True, queued=False)),
            queued=len(pool.jobs(running=False, queued=True)),
            failed=failed,
            error=error,
            replicas=[
                ReplicaLook(
                    name=replica.name,
                    state=replica.state.value,
                    level=life.level_of(replica.name),
                    phase=replica.timeline.phase,
                    start_s=round(replica.timeline.took_s, 3),
                    phases={k: round(v, 3) for k, v in replica.timeline.phases.items()},
                )
                for replica in pool.replicas
            ],
        )


_WORKING = ("awake", "pausing", "paused")


def _lenient(ack: StageAck) -> StageAck:
    if ack.code != SLEEP_UNSUPPORTED:
        return ack
    return msgspec.structs.replace(ack, status="SKIPPED")


def _ordered(life: StageLife, order: Order) -> Sequence[Effect]:
    match order:
        case SleepStages(level=level, mode=mode):
            return life.sleep(level, abort=mode == "abort")
        case WakeStages():
            return life.wake()
        case PauseStages(mode=mode, queue=queue):
            refuse = queue == "refuse"
            return life.pause(abort=mode == "abort", refuse=refuse, keep=mode == "keep")
        case ResumeStages():
            return life.resume()


def _transition(order: Order) -> Transition:
    match order:
        case SleepStages():
            return "sleep"
        case WakeStages():
            return "wake"
        case PauseStages():
            return "pause"
        case ResumeStages():
            return "resume"


def _stage_ack(task_id: str, stage: str, ack: Ack) -> StageAck:
    status: AckStatus = "SUCCESS"
    if ack.code:
        status = "ERROR"
    elif ack.skipped:
        status = "SKIPPED"
    rested = ack.rested
    return StageAck(
        task_id=task_id,
        status=status,
        stage_id=stage,
        rank=int(ack.replica.rpartition("/")[2]),
        level=ack.level,
        freed_bytes=rested.freed_bytes if rested is not None else 0,
        device_freed_bytes=rested.device_freed_bytes if rested is not None else 0,
        took_s=round(rested.took_s, 3) if rested is not None else 0.0,
        restarted=ack.restarted,
        code=ack.code,
        message=f"stage {stage}: {ack.reason}" if ack.code else "",
    )
