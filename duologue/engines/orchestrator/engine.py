"""The engine: requests in, events out, over pools of workers.

A shell around the request table: it owns the timer and the subscribers, and moves effects to
pools. It must not know sessions or models.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import CapacityError, EngineError
from duologue.core.fence import Fence
from duologue.engines.arbiter.devices import Devices
from duologue.engines.arbiter.sharing import shared_devices
from duologue.engines.edges import EDGES, Edge
from duologue.engines.executors import EXECUTORS
from duologue.engines.executors.base import Executor, HoldsPayloads
from duologue.engines.frame_counts import FRAME_COUNTS, FrameCounts
from duologue.engines.messages import JobEnded, JobOutput, JobReport, JobTaken, Open
from duologue.engines.orchestrator.lifecycle import Lifecycle
from duologue.engines.orchestrator.request_table import (
    DUPLICATE_REQUEST,
    Deliver,
    Drop,
    Effect,
    KillWorker,
    RequestTable,
    ToStage,
)
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import Pipeline
from duologue.engines.placement import placements_of
from duologue.engines.pools.fleet import Fleet, Progress
from duologue.engines.pools.replica import ReplicaChange, ReplicaState
from duologue.engines.pools.stage_life import Effect as LifeEffect
from duologue.engines.pools.stage_pool import StagePool, StageStats
from duologue.engines.pools.start_gate import StartGate
from duologue.engines.pools.start_report import report
from duologue.engines.ports import Ended, EngineEvent, Outcome, Request, Subscriber
from duologue.engines.settings import EngineSettings
from duologue.telemetry.metrics import LabelSets, Metrics

log = structlog.get_logger(__name__)

ENGINE_STOPPED = "server_shutting_down"


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A look at the engine.

    Args:
        requests: How many have not ended at every stage.
    """

    requests: int
    stages: Sequence[StageStats]


class Engine:
    """Implements ``EnginePort``.

    Args:
        pipelines: By name, as ``load_pipelines`` returns them.
        executors: In place of those in ``EXECUTORS``, by name; a pipeline that is read from a file
            can name no others. Stopping closes those that are in use.
        edges: Edge functions by name.

    Concurrency:
        Belongs to one event loop, as do all calls.
    """

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        settings: EngineSettings,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        *,
        executors: Mapping[str, Executor] | None = None,
        edges: Mapping[str, Edge] = EDGES,
    ) -> None:
        self._pipelines = dict(pipelines)
        self._metrics = metrics or Metrics(LabelSets())
        self._clock = clock or SystemClock()
        used = sorted({stage.executor for each in pipelines.values() for stage in each.stages})
        ready_made = executors or {}
        available = {
            name: ready_made[name] if name in ready_made else EXECUTORS[name](settings)
            for name in used
        }
        self._beside = [each for each in available.values() if isinstance(each, HoldsPayloads)]
        placements = {each.name: placements_of(each) for each in pipelines.values()}
        gate = StartGate(settings.start_parallel, settings.start_free_mib * 2**20)
        self._devices = Devices(shared_devices(pipelines.values(), settings.device_bytes))
        self._pools = {
            pipeline.stage_key(index): StagePool(
                pipeline.stage_key(index),
                stage,
                available[stage.executor],
                self,
                settings,
                self._clock,
                relays=pipeline.relays(index),
                placements=placements[pipeline.name].get(stage.name, ()),
                gate=gate,
                shares=self._devices.shares_of(pipeline.stage_key(index), stage),
            )
            for pipeline in pipelines.values()
            for index, stage in enumerate(pipeline.stages)
        }
        self._deadlines_s = {
            pipeline.stage_key(index): (stage.deadline_ms or math.inf) / 1000
            for pipeline in pipelines.values()
            for index, stage in enumerate(pipeline.stages)
        }
        self._replicas = [replica for pool in self._pools.values() for replica in pool.replicas]
        self.lifecycle = Lifecycle(
            self._pools, self._abort, self._metrics, settings.start_timeout_s
        )
        self._fleet = Fleet(self._replicas, list(available.values()), settings.stop_timeout_s)
        self._table = RequestTable(settings.cancel_grace_s, edges)
        self._subscribers: dict[str, Subscriber] = {}
        self._accepting = False
        # A timer of its own rather than a place in the wheel: one for all requests, set when a
        # deadline or a grace begins, and most of the time none.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        # Ends that a caller's own call brings about reach it after that call has returned.
        self._in_call = False
        self._ends: dict[str, Ended] = {}
        self._cancelled_at: dict[str, float] = {}

    async def start(self, progress: Progress | None = None) -> None:
        """Start all workers and wait until they are warm.

        Raises:
            EngineError: A worker cannot be started; those that could are stopped again.
        """
        self._accepting = True
        began = self._clock.now()
        await self._fleet.start(progress)
        timelines = [(each.name, each.timeline) for each in self._replicas]
        self.lifecycle.start_report = report(timelines, self._clock.now() - began)

    async def stop(self) -> bool:
        """End all requests and workers; takes little more than ``stop_timeout_s``.

        Returns:
            Whether every worker left by itself; the others were killed.
        """
        self._accepting = False  # first, since a subscriber may want to try again at once
        self.lifecycle.stop()
        stopped = EngineError("the engine stops", code=ENGINE_STOPPED)
        for request_id in self._table.request_ids():
            self._perform(self._table.fail(request_id, stopped, self._clock.now()))
        every_worker_left = await self._fleet.stop()
        self._devices.close()
        if self._timer is not None:
            self._timer.cancel()
        return every_worker_left

    def has_pipeline(self, name: str) -> bool:
        """Tell whether requests for ``name`` can be served."""
        return name in self._pipelines

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        """Accept a request; its events go to ``subscriber``, ending with one ``Ended``.

        Raises:
            CapacityError: All slots of a stage are taken and so is its queue; or a stage sleeps, or
                is paused.
            EngineError: No such pipeline, no replica of a stage is alive, the id is in use, or
                the first input is too large.
        """
        pipeline = self._pipelines.get(request.pipeline)
        if pipeline is None:
            known = ", ".join(sorted(self._pipelines))
            raise EngineError(f"no pipeline is called {request.pipeline!r}; there are {known}")
        if not self._accepting:
            raise EngineError("the engine is not running", code=ENGINE_STOPPED)
        if request.id in self._ends:
            raise EngineError(
                f"the end of the request {request.id} is on its way", code=DUPLICATE_REQUEST
            )
        for index in range(len(pipeline.stages)):
            self._check_room(pipeline.stage_key(index), request.first if index == 0 else None)
        effects = self._table.submit(request, pipeline)
        self._subscribers[request.id] = subscriber
        self._call(effects)
        self._set_timer()

    def append(self, request_id: str, payload: Payload) -> None:
        """Add input to a stream; after its end this does nothing."""
        self._call(self._table.append(request_id, payload))

    def finish_input(self, request_id: str) -> None:
        """Say that no further input follows; the stream ends when it has answered what it has."""
        self._call(self._table.finish_input(request_id))

    def cancel(self, request_id: str) -> None:
        """Stop a request, out of band, overtaking its appends."""
        now = self._clock.now()
        effects = self._table.cancel(request_id, now)
        if effects:
            self._cancelled_at[request_id] = now
        self._call(effects)
        self._set_timer()

    def grant(self, request_id: str, credit: int) -> None:
        """Let the last stage of a request produce ``credit`` more."""
        self._call(self._table.grant(request_id, credit))

    def subscribe(self, request_id: str, subscriber: Subscriber) -> None:
        """Send the further events of a running request to another subscriber."""
        if request_id in self._subscribers:
            self._subscribers[request_id] = subscriber

    def refence(self, request_id: str, fence: Fence) -> None:
        """Let the further events of a running request, its ``Ended`` included, carry ``fence``."""
        self._table.refence(request_id, fence)
        if request_id in self._ends:
            self._ends[request_id] = replace(self._ends[request_id], fence=fence)

    def slots(self, pipeline: str) -> int:
        """Tell how many requests a pipeline works on at once, as its workers have found out."""
        found = self._pipelines[pipeline]
        return min(self._pools[found.stage_key(at)].slots for at in range(len(found.stages)))

    def stats(self) -> EngineStats:
        """Take a look."""
        stages = [pool.stats() for pool in self._pools.values()]
        return EngineStats(len(self._table), stages)

    @property
    def held_bytes(self) -> int:
        """Large payloads on their way between stages, beside the messages."""
        return sum(each.held_bytes for each in self._beside)

    @property
    def held_device_bytes(self) -> int:
        """What workers hold of the devices that have a budget."""
        return self._devices.held_bytes

    def note_fills(self) -> None:
        """Publish how full the bounds of the stages are."""
        held, fill = self._metrics.held_bytes, self._metrics.bound_fill
        stages = [pool.stats() for pool in self._pools.values()]
        held["stage_input"].set(sum(stage.input_bytes for stage in stages))
        fill["stage_input"].set(max((stage.input_fill for stage in stages), default=0.0))
        held["stage_slab"].set(self.held_bytes)
        fill["stage_slab"].set(max((each.fill for each in self._beside), default=0.0))
        held["devices"].set(self.held_device_bytes)
        fill["devices"].set(self._devices.fill)
        fill["stage_slots"].set(max((s.busy / s.slots for s in stages), default=0.0))
        # A stage may have no queue; then nobody waits.
        fill["stage_queue"].set(max((s.queued / max(1, s.queue) for s in stages), default=0.0))

    def on_job_report(self, stage: str, report: JobReport) -> None:
        """A pool has news of a job."""
        match report:
            case JobOutput(job=job, payload=payload):
                try:
                    effects = self._table.on_output(stage, job, payload)
                except EngineError as exc:  # of an edge function
                    effects = self._table.fail(job, exc, self._clock.now())
                self._perform(effects)
            case JobTaken(job=job, count=count):
                self._perform(self._table.on_taken(stage, job, count))
            case JobEnded(job=job, outcome=outcome, code=code, message=text):
                if outcome is Outcome.FAILED:
                    self._note_failure(stage, code, text, report.quote)
                now = self._clock.now()
                cancelled_at = self._cancelled_at.get(job)
                if cancelled_at is not None and outcome is Outcome.CANCELLED:
                    self._metrics.stage_cancel[stage].observe(now - cancelled_at)
                self._perform(self._table.on_ended(stage, job, outcome, code, text, now))
                self._set_timer()

    def on_overflow(self, stage: str, job: str, error: EngineError) -> None:
        """A job was sent more than may wait for it."""
        self._note_failure(stage, error.code, error.message)
        text = f"stage {stage}: {error.message}"
        told = EngineError(text, code=error.code)
        self._perform(self._table.fail(job, told, self._clock.now()))
        self._set_timer()

    def on_step(self, stage: str, duration_s: float) -> None:
        """A worker has done a step."""
        self._metrics.stage_step[stage].observe(duration_s)
        if duration_s > self._deadlines_s[stage]:
            self._metrics.frame_deadline_missed[stage].inc()

    def on_counted(self, worker: str, counts: FrameCounts) -> None:
        """A worker has counted what happened to its frames."""
        for name in FRAME_COUNTS:
            if count := getattr(counts, name):
                self._metrics.lockstep[worker, name].inc(count)

    def on_placed(self, stage: str, waited_s: float) -> None:
        """A job got a slot."""
        self._metrics.stage_queue[stage].observe(waited_s)

    def on_replica_change(self, stage: str, change: ReplicaChange) -> None:
        """A worker is warm, or was lost."""
        if change.loss is not None:
            self._devices.left(change.name)
        if change.loss is not None and change.state is not ReplicaState.STOPPED:
            self._metrics.worker_lost[stage].inc()
        self._fleet.on_change(change)

    def on_life(self, stage: str, effects: Sequence[LifeEffect]) -> None:
        """Something follows for the life of a stage."""
        self.lifecycle.perform(stage, effects)

    def _abort(self, stage: str, job: str, error: EngineError) -> None:
        """End a request since one of its stages takes a rest."""
        self._perform(self._table.fail(job, error, self._clock.now()))
        self._set_timer()

    def _note_failure(self, stage: str, code: str, reason: str, quote: str = "") -> None:
        self._metrics.stage_failed[stage].inc()
        private = {"pii.quote": quote} if quote else {}
        log.warning("stage_failed", stage=stage, code=code, reason=reason, **private)

    def _check_room(self, stage: str, first: Payload | None) -> None:
        try:
            self._pools[stage].check_room(first)
        except CapacityError:
            self._metrics.stage_refused[stage].inc()
            raise

    def _call(self, effects: Sequence[Effect]) -> None:
        self._in_call = True
        try:
            self._perform(effects)
        finally:
            self._in_call = False

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToStage(stage=stage, message=Open() as message):
                    self._pools[stage].open(message)
                case ToStage(stage=stage, message=message):
                    self._pools[stage].send(message)
                case Deliver(event=Ended() as ended) if self._in_call:
                    self._ends[ended.request_id] = ended
                    asyncio.get_running_loop().call_soon(self._deliver_end, ended.request_id)
                case Deliver(event=event):
                    self._deliver(event)
                case KillWorker(stage=stage, job=job):
                    self._pools[stage].kill_worker_of(job)
                case Drop(stage=stage):
                    self._metrics.stale_output_dropped[stage].inc()

    def _deliver_end(self, request_id: str) -> None:
        self._deliver(self._ends.pop(request_id))

    def _deliver(self, event: EngineEvent) -> None:
        if isinstance(event, Ended):
            subscriber = self._subscribers.pop(event.request_id)
            if self._cancelled_at:
                self._cancelled_at.pop(event.request_id, None)
        else:
            subscriber = self._subscribers[event.request_id]
        subscriber.on_engine_event(event)

    def _set_timer(self) -> None:
        when = self._table.next_deadline()
        if when == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = when
        if when is not None:
            delay_s = max(0.0, when - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        now = self._clock.now()
        while effects := self._table.on_timer(now):
            self._perform(effects)
        self._timer_at = None
        self._set_timer()
