"""What stands behind a gateway, made from the settings: the engine, the plugins and the sessions.

This module must not know gateways, nor whether one is in the same process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from duologue.artifacts.references import references_in, resolve_references
from duologue.artifacts.store import Store
from duologue.composition.kept import make_job_desk
from duologue.core.clock import Clock
from duologue.core.errors import ConfigError
from duologue.core.ids import IdMaker, id_maker
from duologue.core.installation import install_command
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.duplex_plugins.registry import make_plugin
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.pipeline import BUILT_IN_FOLDER, Pipeline, load_pipelines, stage_keys
from duologue.engines.ports import WorkClass
from duologue.gateway.admission import Workers
from duologue.gateway.http.settings import ClassWeights
from duologue.gateway.settings import NOT_KEYS
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.local import LocalHost
from duologue.hosts.request_slots import RequestSlots
from duologue.protocol.errors import ErrorCode
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.resumption.checkpoint_keeper import CheckpointKeeper
from duologue.sessions.resumption.checkpoints import CheckpointFolder
from duologue.sessions.session import CLIENT_GONE
from duologue.sessions.settings import SessionSettings
from duologue.sessions.via import DIALECT_LABELS, TRANSPORTS
from duologue.sessions.watching.observer import STALE_AT_SESSION, Observation
from duologue.settings import Settings
from duologue.telemetry import Flight, LabelSets, Metrics, keep_flight
from duologue.telemetry.looks import Look
from duologue.telemetry.settings import TelemetrySettings
from duologue.telemetry.tape import MAX_WAITING_BYTES, Recordings

if TYPE_CHECKING:
    from duologue.jobs.desk import JobDesk
    from duologue.telemetry.tracing import Traces


@dataclass(frozen=True, slots=True)
class EngineSide:
    """The parts."""

    engine: Engine
    plugins: Mapping[str, DuplexPlugin]
    sessions: SessionManager
    host: LocalHost
    slots: RequestSlots
    jobs: JobDesk | None
    metrics: Metrics
    wheel: TimerWheel
    recordings: Recordings | None
    traces: Traces | None

    def undone_by(self, undo: AsyncExitStack) -> None:
        """Let ``undo`` stop the engine, and then close what is written to."""
        if self.traces is not None:
            undo.push_async_callback(asyncio.to_thread, self.traces.close)
        if self.recordings is not None:
            undo.push_async_callback(asyncio.to_thread, self.recordings.close)
        undo.push_async_callback(self.engine.stop)

    @property
    def looks(self) -> tuple[Look, ...]:
        """Publish what nobody writes between scrapes."""
        return (
            self.sessions.note_fills,
            self.engine.note_fills,
            self._note_door,
            self._note_recordings,
        )

    def _note_door(self) -> None:
        self.metrics.bound_fill["call_queue"].set(self.host.queue.fill)
        self.metrics.bound_fill["http_requests"].set(self.slots.fill)

    def _note_recordings(self) -> None:
        waiting_bytes = 0 if self.recordings is None else self.recordings.waiting_bytes
        self.metrics.held_bytes["recordings"].set(waiting_bytes)
        self.metrics.bound_fill["recordings"].set(waiting_bytes / MAX_WAITING_BYTES)

    async def keep_checkpoints(
        self, settings: SessionSettings, clock: Clock, undo: AsyncExitStack
    ) -> list[str]:
        """Read what an earlier process has left, and keep what this one would leave.

        Args:
            undo: Is left before sessions are ended: what is open then can be gone on with.

        Returns:
            The ids of sessions that were left.
        """
        if settings.checkpoint_folder is None:
            return []
        folder = CheckpointFolder(
            settings.checkpoint_folder,
            max_files=settings.checkpoint_files,
            max_bytes=settings.checkpoint_bytes,
            max_age_s=settings.checkpoint_max_age_s,
        )
        keeper = CheckpointKeeper(folder, self.sessions.all, clock, self.wheel)
        now = clock.now()
        left = await keeper.load(settings.disconnect_grace_s)
        for kept in left:
            self.sessions.past.keep(kept, now)
        keeper.start()
        undo.push_async_callback(keeper.stop)
        return [kept.inheritance.session_id for kept in left]

    async def keep_jobs(self, undo: AsyncExitStack) -> None:
        """Take jobs, and go on with those that an earlier process has left.

        Raises:
            ConfigError: Their folder cannot be used.
        """
        if self.jobs is not None:
            await undo.enter_async_context(self.jobs.open())

    def workers(self) -> Workers:
        """Take a look at the engine."""
        stages = self.engine.stats().stages
        lifecycle = self.engine.lifecycle
        asleep, paused = lifecycle.resting()
        return Workers(
            ready=sum(stage.ready for stage in stages),
            total=sum(stage.replicas for stage in stages),
            every_stage=all(stage.ready for stage in stages),
            asleep=asleep,
            paused=paused,
            start=lifecycle.start_report,
            max_sessions=self.sessions.max_sessions,
        )


def make_engine_side(
    settings: Settings, clock: Clock, *, new_id: IdMaker | None = None
) -> EngineSide:
    """Make the parts. Nothing of them runs yet.

    Raises:
        ConfigError: The settings name something that is not there.
    """
    loop = asyncio.get_running_loop()
    pipelines = configured_pipelines(settings)
    plugins = make_plugins(settings)
    metrics = Metrics(labels(settings, pipelines))
    wheel = TimerWheel(loop.call_at)
    engine = Engine(pipelines, settings.engine, metrics, clock)
    recordings = _recordings(settings.telemetry)
    traces = _traces(settings.telemetry, clock)
    sessions = SessionManager(
        engine,
        plugins,
        settings.sessions,
        clock=clock,
        wheel=wheel,
        new_id=new_id or id_maker(),
        slots=lambda pipeline: engine.slots(pipeline) if engine.has_pipeline(pipeline) else 0,
        observation=Observation(
            metrics=metrics,
            kinds=recorded_kinds(),
            clock=clock,
            recorded_entries=settings.telemetry.flight_entries,
            keep=_flight_keeper(settings.telemetry, loop),
            tape=None if recordings is None else recordings.tape,
            trace=None if traces is None else traces.turn,
        ),
    )
    queue = CallQueue(settings.gateway.queued_calls, metrics.calls_queued)
    host = LocalHost(sessions, clock, wheel, queue)
    http = settings.gateway.http
    slots = RequestSlots(
        http.max_requests,
        http.queued_requests,
        class_weights(http.class_weights, pipelines.values()),
        clock=clock,
        metrics=metrics,
    )
    jobs = make_job_desk(
        settings,
        pipelines.values(),
        engine,
        clock,
        new_id or id_maker(),
        slots.taken_by_job,
    )
    return EngineSide(
        engine=engine,
        plugins=plugins,
        sessions=sessions,
        host=host,
        slots=slots,
        jobs=jobs,
        metrics=metrics,
        wheel=wheel,
        recordings=recordings,
        traces=traces,
    )


def class_weights(weights: ClassWeights, pipelines: Iterable[Pipeline]) -> Mapping[WorkClass, int]:
    """Return the weights of the classes that plain requests can have here."""
    found = {WorkClass.INTERACTIVE: weights.interactive}
    if any(pipeline.offer is not None for pipeline in pipelines):
        found[WorkClass.BATCH] = weights.batch
    return found


def make_plugins(settings: Settings) -> Mapping[str, DuplexPlugin]:
    """Return the plugins that the settings name; raises ``ConfigError``."""
    return {model.name: make_plugin(model.plugin, model.options) for model in settings.models}


def configured_pipelines(settings: Settings) -> dict[str, Pipeline]:
    """Return the pipelines that the settings name, with the paths of their weights.

    Raises:
        ConfigError: A pipeline, or something in it, is unknown.
        ArtifactMissing: Weights are not in the cache; the message says how to get them.
    """
    store = Store(settings.artifacts)
    pipelines = named_pipelines(settings)
    stages = [stage for pipeline in pipelines.values() for stage in pipeline.stages]
    store.check({id_ for stage in stages for id_ in references_in(stage.settings)})
    return {name: _with_weights(pipeline, store) for name, pipeline in pipelines.items()}


def _with_weights(pipeline: Pipeline, store: Store) -> Pipeline:
    stages = tuple(
        msgspec.structs.replace(stage, settings=resolve_references(stage.settings, store))
        for stage in pipeline.stages
    )
    return msgspec.structs.replace(pipeline, stages=stages)


def named_pipelines(settings: Settings) -> dict[str, Pipeline]:
    """Return the pipelines that the settings name, wherever their weights are.

    Raises:
        ConfigError: A pipeline, or something in it, is unknown.
    """
    shipped = [BUILT_IN_FOLDER / f"{name}.yaml" for name in settings.engine.pipelines]
    return load_pipelines([*shipped, *settings.engine.pipeline_files])


def labels(settings: Settings, pipelines: dict[str, Pipeline]) -> LabelSets:
    """Return every value that the label of a figure can take."""
    return LabelSets(
        plugins=tuple(model.name for model in settings.models),
        stages=(*stage_keys(pipelines.values()), STALE_AT_SESSION),
        beats=tuple(beats_of(pipelines.values())),
        pipelines=tuple(pipelines),
        close_reasons=(*ErrorCode, CLIENT_GONE, "closed"),
        mailboxes=("session",),
        transports=TRANSPORTS,
        dialects=DIALECT_LABELS,
        keys=(*settings.gateway.key_names(), *NOT_KEYS),
    )


def beats_of(pipelines: Iterable[Pipeline]) -> Sequence[str]:
    """Return the names of workers that may keep a beat of their own: those with a deadline."""
    return [
        f"{pipeline.stage_key(at)}/{number}"
        for pipeline in pipelines
        for at, stage in enumerate(pipeline.stages)
        if stage.work_class is WorkClass.REALTIME
        for number in range(stage.replicas)
    ]


def _flight_keeper(
    telemetry: TelemetrySettings, loop: asyncio.AbstractEventLoop
) -> Callable[[Flight], None]:
    folder = telemetry.flight_folder
    if folder is None:
        return lambda _flight: None
    write = partial(keep_flight, folder=folder, max_files=telemetry.flight_files)

    def keep(flight: Flight) -> None:
        loop.run_in_executor(None, write, flight)

    return keep


def _recordings(telemetry: TelemetrySettings) -> Recordings | None:
    if telemetry.record == "off":
        return None
    return Recordings(
        telemetry.record_folder,
        max_files=telemetry.record_files,
        max_bytes=telemetry.record_bytes,
        content=telemetry.record == "content",
    )


def _traces(telemetry: TelemetrySettings, clock: Clock) -> Traces | None:
    if not telemetry.traces:
        return None
    try:
        from duologue.telemetry.tracing import Traces
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"telemetry.traces needs the package '{exc.name}', which is not installed. "
            f"Install it with: {install_command('duologue[otel]')}"
        ) from exc
    return Traces(clock)
