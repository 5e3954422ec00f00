"""Which devices are shared by which workers, as the pipelines have it. Pure.

This module must not know how a share is kept, nor runners.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duologue.core.errors import ConfigError
from duologue.engines.executors import IN_A_CLUSTER
from duologue.engines.ports import WorkClass

if TYPE_CHECKING:
    from duologue.engines.pipeline import Pipeline, StageSpec


@dataclass(slots=True)
class SharedDevice:
    """A device that somebody must share out.

    Args:
        workers: Names of those that use it, in the order of their seats.
        period_s: The shortest of the realtime stages' periods; ``inf``: there is none.
        budget_bytes: 0: no bound.
    """

    workers: list[str] = field(default_factory=list)
    period_s: float = math.inf
    budget_bytes: int = 0


def worker_name(stage_key: str, number: int) -> str:
    """Name a worker, as in logs."""
    return f"{stage_key}/{number}"


def device_of(stage: StageSpec, number: int) -> str | None:
    """Return the device of one of a stage's workers; ``None``: it was given none."""
    return stage.devices[number % len(stage.devices)] if stage.devices else None


def shared_devices(
    pipelines: Iterable[Pipeline], budgets: Mapping[str, int]
) -> dict[str, SharedDevice]:
    """Return the devices that realtime and batch workers share, and those that have a budget.

    Args:
        budgets: Bytes by device.

    Raises:
        ConfigError: A realtime stage on such a device does not say how often it steps.
    """
    found: dict[str, list[tuple[str, str, StageSpec]]] = {}
    for pipeline in pipelines:
        for index, stage in enumerate(pipeline.stages):
            if stage.executor not in IN_A_CLUSTER:
                for device, worker in _placed(pipeline.stage_key(index), stage):
                    found.setdefault(device, []).append((pipeline.name, worker, stage))
    unknown = sorted(budgets.keys() - found.keys())
    if unknown:
        known = ", ".join(sorted(found)) or "none"
        raise ConfigError(
            f"engine.device_bytes names {unknown[0]!r}, and no stage runs there; devices of stages "
            f"are: {known}"
        )
    shared = {}
    for device, members in found.items():
        classes = {stage.work_class for _, _, stage in members}
        if device in budgets or {WorkClass.REALTIME, WorkClass.BATCH} <= classes:
            shared[device] = SharedDevice(
                [worker for _, worker, _ in members],
                _shortest_period_s(device, [(name, stage) for name, _, stage in members]),
                budgets.get(device, 0),
            )
    return shared


def _placed(key: str, stage: StageSpec) -> Iterator[tuple[str, str]]:
    for number in range(stage.replicas):
        if (device := device_of(stage, number)) is not None:
            yield device, worker_name(key, number)


def _shortest_period_s(device: str, stages: Iterable[tuple[str, StageSpec]]) -> float:
    shortest_s = math.inf
    for pipeline, stage in stages:
        if stage.work_class is not WorkClass.REALTIME:
            continue
        if stage.deadline_ms is None:
            raise ConfigError(
                f"stage {stage.name!r} of the pipeline {pipeline!r} shares the device {device!r} "
                "with batch work: give it deadline_ms, the length of its frames, or a device of "
                "its own"
            )
        shortest_s = min(shortest_s, stage.deadline_ms / 1000)
    return shortest_s
