"""Settings of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from duologue.config import Section

Seconds = Annotated[float, Field(gt=0, le=3600)]


class RaySettings(Section):
    """The cluster for stages whose executor is ``ray``. It is joined, never started."""

    address: Annotated[str, Field(min_length=1)] = "auto"
    """Address of its head, as ``10.0.0.1:6379``; ``auto``: of the cluster that this machine is
    part of. This machine must be part of it either way (``ray start``)."""

    join_timeout_s: Seconds = 30.0
    """Time in which the cluster must have been joined."""

    place_timeout_s: Seconds = 60.0
    """Time in which the cluster must have found room for the workers of a pipeline, and started
    their actors; longer where it starts machines of its own accord."""


class EngineSettings(Section):
    """Section ``engine``."""

    pipelines: tuple[str, ...] = ("vad", "end_of_turn", "asr", "llm", "tts")
    """Which of the pipelines that ship are started, by file name."""

    pipeline_files: tuple[Path, ...] = ()
    """Pipelines to use in addition to those that ship, or in place of those of the same name."""

    start_timeout_s: Seconds = 300.0
    """Time in which a worker must have loaded and warmed its model."""

    start_parallel: Annotated[int, Field(ge=0, le=4096)] = 0
    """How many workers may load their models at a time; 0: all, side by side."""

    start_free_mib: Annotated[int, Field(ge=0)] = 0
    """While this machine has less free memory than so many MiB, one worker loads at a time."""

    stop_timeout_s: Seconds = 5.0
    """Time that workers have to leave when the engine stops; then they are killed."""

    cancel_grace_s: Seconds = 10.0
    """Time in which a worker must acknowledge a cancel; one that hangs in a step is restarted."""

    restart_backoff_s: Seconds = 0.2
    """Wait before a lost worker is restarted; doubled for each further loss in a row."""

    restart_backoff_max_s: Seconds = 30.0
    """Longest wait before a lost worker is restarted."""

    device_bytes: Mapping[str, Annotated[int, Field(ge=1024)]] = Field(default_factory=dict)
    """Memory of devices, by the name that stages have them by, as ``cuda:0``, that their workers
    may take together, of those that say what they take: models that make images and videos. A job
    waits until there is room for it, and is refused where there never could be. Of devices that
    are not named, anybody takes what he gets."""

    ray: RaySettings = RaySettings()
    """Where stages with the executor ``ray`` run."""
