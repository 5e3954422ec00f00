"""Pipelines: which stages a request passes, and what each stage runs on.

Read from YAML and checked whole: unknown keys and unknown names are refused at start, not at the
first request. This module must not know how stages are run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from duologue.core.errors import ConfigError
from duologue.engines.edges import EDGES
from duologue.engines.executors import EXECUTORS
from duologue.engines.framing import MAX_FRAME_BYTES
from duologue.engines.media_offer import MediaOffer
from duologue.engines.output_types import parse_output_types
from duologue.engines.pipeline_source import read_source
from duologue.engines.placement import check_placement
from duologue.engines.policy_offer import PolicyOffer
from duologue.engines.ports import WorkClass
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.schedulers import SCHEDULERS
from duologue.engines.speech_offer import SpeechOffer
from duologue.engines.transport.choice import (
    AUTO,
    BETWEEN_HOSTS,
    SLAB,
    check_transport,
    choose_transport,
)

BUILT_IN_FOLDER = Path(__file__).parents[1] / "pipelines"
"""Pipelines that ship with Duologue, one file each."""

Count = Annotated[int, msgspec.Meta(ge=1, le=4096)]
InputBytes = Annotated[int, msgspec.Meta(ge=64 * 1024, le=MAX_FRAME_BYTES // 2)]
SlabMib = Annotated[int, msgspec.Meta(ge=0, le=4096)]
QueueLength = Annotated[int, msgspec.Meta(ge=0, le=4096)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]


class Resources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each worker of a stage takes of a cluster.

    Args:
        gpus: ``None``: one where the stage's ``devices`` are GPUs, else none.
        memory_bytes: Of the machine. It is set aside, not enforced.
        others: By the names that machines of the cluster were started with.
    """

    cpus: Amount = 1.0
    gpus: Amount | None = None
    memory_bytes: Amount = 0
    others: dict[str, Amount] = {}


class StageSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model, and how many of it.

    Args:
        name: Unique in its pipeline.
        runner: A name of the runner registry.
        executor: Where its workers run: a name of ``executors.EXECUTORS``.
        replicas: How many workers.
        devices: Where they run, in turn: each is given one as its runner's setting ``device``.
        resources: What each takes, where the executor places workers on several machines.
        max_jobs: How many requests one worker holds at a time: its slots.
        queue: How many requests may wait for a slot.
        max_input_bytes: How much input of one request may wait for a step; one that is sent more
            fails. Each input counts a little more than it holds (see ``payload_base``).
        work_class: What lateness costs. Slots and workers belong to stages, so two classes over one
            model are two stages, which cannot starve each other.
        deadline_ms: How long a step may take before somebody hears it: its audio. One that takes
            longer is counted as missed; nothing else happens.
        scheduler: A name of ``schedulers.SCHEDULERS``.
        env: Environment of the workers, set before they import anything.
        interpreter: The Python that runs the workers, where a model needs its own packages.
        settings: Of the runner.
        credit: How far the stage may be ahead of the next one, in its outputs' units (see
            ``credit.cost``). Has no effect on the last stage, whose credit comes with requests.
        edge: A name of ``edges.EDGES``: how outputs become inputs of the next stage.
        wake_on_request: While it sleeps, a request wakes it and waits in its queue; else it is
            refused.
        transport: Which way large payloads take to its workers and from them: a name of
            ``transport.choice.ALLOWED`` for its executor, or ``auto``.
        slab_mib: Room for large payloads on their way to a worker in a process of its own, and as
            much for those from it; memory is taken as it is used. What finds no room goes with
            the messages; 0: everything does.
    """

    name: Name
    runner: str
    executor: str = "process"
    replicas: Count = 1
    devices: tuple[str, ...] = ()
    resources: Resources | None = None
    max_jobs: Count = 1
    queue: QueueLength = 16
    max_input_bytes: InputBytes = 16 * 1024 * 1024
    work_class: WorkClass = WorkClass.INTERACTIVE
    deadline_ms: Count | None = None
    scheduler: str = "fifo"
    env: dict[str, str] = {}
    interpreter: str | None = None
    settings: dict[str, Any] = {}
    credit: Count | None = None
    edge: str = "forward"
    transport: str = AUTO
    slab_mib: SlabMib = 64
    wake_on_request: bool = False


class Pipeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stages in the order in which a request passes them.

    Args:
        outputs: What comes out of the last stage, see ``output_types``; ``None``: text, or what
            only the server itself reads.
        offer: What clients may ask of it directly, as a model of the pipeline's name.
        policy: What robots may ask of it, likewise.
        speech: What clients may have it speak, likewise.
        placement: Which machines its workers get, where the executor has several: as few as
            possible (``pack``) or as many (``spread``); the strict ones fail rather than
            compromise.
    """

    name: Name
    stages: Annotated[tuple[StageSpec, ...], msgspec.Meta(min_length=1)]
    outputs: str | tuple[str, ...] | None = None
    offer: MediaOffer | None = None
    policy: PolicyOffer | None = None
    speech: SpeechOffer | None = None
    placement: Literal["pack", "spread", "strict_pack", "strict_spread"] = "pack"

    def relays(self, index: int) -> bool:
        """Tell whether what a stage makes can go to the next one without being read between."""
        both = self.stages[index : index + 2]
        if len(both) < 2 or both[0].edge != "forward" or both[0].executor != both[1].executor:
            return False
        first, second = (_transport_of(stage) for stage in both)
        return first == second and first in (SLAB, *BETWEEN_HOSTS)

    def stage_key(self, index: int) -> str:
        """Name a stage among all pipelines, as in metrics: ``llm``, or ``speech.tone``."""
        stage = self.stages[index].name
        return stage if stage == self.name else f"{self.name}.{stage}"


def stage_keys(pipelines: Iterable[Pipeline]) -> tuple[str, ...]:
    """Name all stages: the closed set of a metric's label."""
    return tuple(each.stage_key(n) for each in pipelines for n in range(len(each.stages)))


def load_pipelines(
    paths: Iterable[Path], runners: RunnerRegistry | None = None
) -> dict[str, Pipeline]:
    """Read pipeline files; a later one replaces an earlier pipeline of the same name.

    Raises:
        ConfigError: A file cannot be read, or something in it is unknown or out of bounds.
    """
    registry = runners or RunnerRegistry.installed()
    pipelines = {}
    for path in paths:
        pipeline = _read(path)
        check_names(pipeline, registry)
        pipelines[pipeline.name] = pipeline
    return pipelines


def check_names(pipeline: Pipeline, runners: RunnerRegistry) -> None:
    """Check every name that a pipeline uses, and what its runners are told.

    Raises:
        ConfigError: A name or a setting is unknown, or two stages have the same one.
    """
    seen: set[str] = set()
    for stage in pipeline.stages:
        where = f"stage {stage.name!r} of the pipeline {pipeline.name!r}"
        if stage.name in seen:
            raise ConfigError(f"{where} exists twice; give one another name")
        seen.add(stage.name)
        if stage.runner not in runners:
            raise _unknown(where, "runner", stage.runner, runners.names())
        try:
            runners.check_settings(stage.runner, stage.settings)
        except ConfigError as exc:
            raise ConfigError(f"{where}: {exc.message}") from exc
        _check_name(where, "executor", stage.executor, EXECUTORS)
        _check_name(where, "scheduler", stage.scheduler, SCHEDULERS)
        _check_name(where, "edge", stage.edge, EDGES)
        check_transport(stage.executor, stage.transport, where)
        check_placement(stage, where)
        if stage.devices and stage.replicas % len(stage.devices):
            raise ConfigError(
                f"{where}: {stage.replicas} replicas cannot be shared out evenly among"
                f" {len(stage.devices)} devices; make them a multiple of that"
            )


def _transport_of(stage: StageSpec) -> str:
    return choose_transport(
        stage.executor,
        stage.transport,
        room_bytes=stage.slab_mib,
        interpreter=stage.interpreter,
    )


def _check_name(where: str, kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise _unknown(where, kind, name, known)


def _unknown(where: str, kind: str, name: str, known: Collection[str]) -> ConfigError:
    names = ", ".join(sorted(known))
    return ConfigError(f"{where}: no {kind} is called {name!r}; there are {names}")


def _read(path: Path) -> Pipeline:
    source = read_source(path, BUILT_IN_FOLDER)
    try:
        pipeline = msgspec.convert(source.tree, Pipeline)
        parse_output_types(pipeline.outputs)
    except (msgspec.ValidationError, ConfigError) as exc:
        raise ConfigError(f"pipeline {path}: {exc}") from exc
    return pipeline
