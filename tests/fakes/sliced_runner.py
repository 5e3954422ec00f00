"""Batch work and realtime work for a device that both share.

``SLICED`` makes ``slices`` steps of each input, each of which takes ``part_s``; ``TICKING`` answers
each input at once. Worker processes find them as ``tests.fakes.sliced_runner:SLICED``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence

import msgspec

from duologue.engines.payloads import TextDelta
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType


class SlicedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``part_s``: the shortest slice; ``bytes_per_letter``: what a job takes of its device.

    The worker dies of a text that is ``crashes_at``.
    """

    device: str = "cpu"
    slices: int = 4
    part_s: float = 0.0
    model_bytes: int = 0
    bytes_per_letter: int = 1
    crashes_at: str = ""


class SlicedRunner:
    """``Sliced`` and ``HoldsMemory``. The length of a text is its shape."""

    max_batch = 1

    def __init__(
        self, settings: SlicedSettings, spend: Callable[[float], None] = time.sleep
    ) -> None:
        self._settings = settings
        self.spend = spend
        self.slice_s = 1.0
        self.longest_part_s = 0.0
        self.part_of: Callable[[str], float] = lambda _text: settings.part_s

    @property
    def resident_bytes(self) -> int:
        return self._settings.model_bytes

    def warm_up(self) -> None:
        self.longest_part_s = self._settings.part_s

    def open(self, job: Job) -> None:
        job.state = 0

    def ready(self, job: Job) -> bool:
        return bool(job.inputs)

    def slice_shape(self, jobs: Sequence[Job]) -> Hashable:
        return len(_text(jobs[0])) if jobs[0].inputs else None

    def job_bytes(self, job: Job) -> int:
        return len(_text(job)) * self._settings.bytes_per_letter

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        (job,) = jobs
        if _text(job) == self._settings.crashes_at:
            raise RuntimeError("a crash was asked for")
        self.longest_part_s = self.part_of(_text(job))
        self.spend(self.longest_part_s)
        job.state += 1
        if job.state < self._settings.slices:
            return [Step()]
        return [Step((job.inputs.popleft(),), done=True)]

    def close(self, job: Job) -> None:
        job.state = None


class TickingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    device: str = "cpu"


class TickingRunner:
    max_batch = 8

    def __init__(self, _settings: TickingSettings) -> None:
        pass

    def warm_up(self) -> None:
        pass

    def open(self, job: Job) -> None:
        pass

    def ready(self, job: Job) -> bool:
        return bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        return [Step((job.inputs.popleft(),)) for job in jobs]

    def close(self, job: Job) -> None:
        pass


def _text(job: Job) -> str:
    first = job.inputs[0]
    assert isinstance(first, TextDelta)
    return first.text


SLICED = RunnerType.plain(SlicedSettings, SlicedRunner)
TICKING = RunnerType.plain(TickingSettings, TickingRunner)
