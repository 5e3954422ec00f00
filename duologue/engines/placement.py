"""Which places of a cluster the workers of a pipeline take: one group for each pipeline. Pure.

This module must not know what a cluster is, nor who asks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from duologue.core.errors import ConfigError
from duologue.engines.executors import IN_A_CLUSTER
from duologue.engines.messages import Placement

if TYPE_CHECKING:
    from duologue.engines.pipeline import Pipeline, StageSpec

_GPU = "cuda"
_OURS_TO_NAME = ("CPU", "GPU", "memory")
CHOSEN_BY_THE_CLUSTER = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
"""Variables that a stage in a cluster may not set: they would undo what was set aside for it."""


def placements_of(pipeline: Pipeline) -> Mapping[str, Sequence[Placement]]:
    """Return the places of the workers of each stage that runs in a cluster.

    They are one group, so that either all of them are found or none is taken.
    """
    placed = [stage for stage in pipeline.stages if stage.executor in IN_A_CLUSTER]
    bundles = tuple(bundle_of(stage) for stage in placed for _ in range(stage.replicas))
    strategy = pipeline.placement.upper()
    places: dict[str, Sequence[Placement]] = {}
    first = 0
    for stage in placed:
        indices = range(first, first + stage.replicas)
        places[stage.name] = [
            Placement(group=pipeline.name, strategy=strategy, bundles=bundles, index=index)
            for index in indices
        ]
        first += stage.replicas
    return places


def bundle_of(stage: StageSpec) -> dict[str, float]:
    """Return what one worker of a stage takes."""
    gpus, cpus, memory_bytes = None, 1.0, 0.0
    others: Mapping[str, float] = {}
    if stage.resources is not None:
        gpus, cpus = stage.resources.gpus, stage.resources.cpus
        memory_bytes, others = stage.resources.memory_bytes, stage.resources.others
    if gpus is None:
        gpus = float(any(device.startswith(_GPU) for device in stage.devices))
    named = {"CPU": cpus, "GPU": gpus, "memory": memory_bytes, **others}
    return {name: amount for name, amount in named.items() if amount}


def check_placement(stage: StageSpec, where: str) -> None:
    """Check what a stage says of its place.

    Args:
        where: What the stage is called in an error.

    Raises:
        ConfigError: It makes no sense with the stage's executor.
    """
    if stage.executor not in IN_A_CLUSTER:
        if stage.resources is not None:
            names = ", ".join(sorted(IN_A_CLUSTER))
            raise ConfigError(
                f"{where}: resources are for executors that place workers ({names}); "
                f"{stage.executor!r} does not"
            )
        return
    if not bundle_of(stage):
        raise ConfigError(f"{where}: a worker takes something of a cluster, if only cpus: 0.1")
    if stage.resources is not None:
        for name in _OURS_TO_NAME:
            if name in stage.resources.others:
                raise ConfigError(f"{where}: {name!r} has a name of its own among the resources")
    for device in stage.devices:
        if device.startswith(_GPU) and device not in (_GPU, f"{_GPU}:0"):
            raise ConfigError(
                f"{where}: {device!r} would be out of reach: each worker sees only the GPUs that "
                f"it was given, counted from 0; write '{_GPU}'"
            )
    for name in CHOSEN_BY_THE_CLUSTER:
        if name in stage.env:
            raise ConfigError(f"{where}: {name} is for the cluster to set, not for env")
