"""A runner of a package of its own, which gives out again whatever it is given.

Worker processes find it by its entry point: ``installed`` writes what pip would have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import ENTRY_POINT_GROUP, RunnerType

ROOT = Path(__file__).parents[2]


class CopyingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``times``: how often it gives out each input."""

    times: int = 1


class CopyingRunner:
    max_batch = 4

    def __init__(self, settings: CopyingSettings) -> None:
        self._times = settings.times

    def warm_up(self) -> None:
        pass

    def open(self, job: Job) -> None:
        pass

    def ready(self, job: Job) -> bool:
        return bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        return [Step((job.inputs.popleft(),) * self._times) for job in jobs]

    def close(self, job: Job) -> None:
        pass


COPYING = RunnerType.plain(CopyingSettings, CopyingRunner)


def installed(folder: Path) -> Mapping[str, str]:
    """Install the runner ``copying`` into a folder; returns the environment that finds it there."""
    package = folder / "copying-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: copying\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        f"[{ENTRY_POINT_GROUP}]\ncopying = tests.fakes.copying_runner:COPYING\n"
    )
    return {"PYTHONPATH": f"{ROOT}:{folder}"}
