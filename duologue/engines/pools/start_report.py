"""How a start went: what each worker did, phase by phase, and how long that took. Pure.

This module must not know workers, nor who reads the report.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

WAIT, SPAWN = "wait", "spawn"
"""Phases before the worker can say anything: for its turn, and for its process."""

PHASES = (WAIT, SPAWN, "import", "load", "capture", "warm_up")
"""All phases, in their order: the last four are announced by the worker (``worker_model``)."""

_NOTABLE_S = 0.05
"""A shorter phase is left out of the table."""


class StartTimeline:
    """The phases of one start of a worker."""

    def __init__(self) -> None:
        self.phase = ""
        """The one that goes on; empty: none does."""
        self.took_s = 0.0
        self.phases: dict[str, float] = {}
        self._began = 0.0
        self._entered = 0.0

    def begin(self, now: float) -> None:
        """A start begins, with the wait for its turn."""
        self.phases = {}
        self.phase = WAIT
        self._began = self._entered = now

    def enter(self, phase: str, now: float) -> None:
        """A phase begins, and the one before is over."""
        if self.phase:
            so_far = self.phases.get(self.phase, 0.0)
            self.phases[self.phase] = so_far + now - self._entered
        self.phase = phase
        self._entered = now
        self.took_s = now - self._began

    def end(self, now: float) -> None:
        """The start is over."""
        self.enter("", now)


class WorkerStart(msgspec.Struct, frozen=True):
    """How one worker started.

    Args:
        phases: Seconds of each of ``PHASES`` that there was.
    """

    worker: str
    took_s: float
    phases: dict[str, float]


class StartReport(msgspec.Struct, frozen=True):
    """How all workers started, side by side.

    Args:
        took_s: From the first that began until the last was ready.
        summed_s: What it would have taken one after the other.
    """

    took_s: float
    summed_s: float
    workers: list[WorkerStart]


def report(timelines: Iterable[tuple[str, StartTimeline]], took_s: float) -> StartReport:
    """Make the report; the slowest worker goes first."""
    workers = [
        WorkerStart(
            name,
            round(each.took_s, 3),
            {phase: round(each.phases[phase], 3) for phase in PHASES if phase in each.phases},
        )
        for name, each in timelines
    ]
    workers.sort(key=lambda each: -each.took_s)
    summed_s = sum(each.took_s - each.phases.get(WAIT, 0.0) for each in workers)
    return StartReport(round(took_s, 3), round(summed_s, 3), workers)


def lines(start: StartReport) -> list[str]:
    """Return the report for a person: one line, and one for each worker."""
    if not start.workers:
        return []
    count = len(start.workers)
    plural = "model" if count == 1 else "models"
    width = max(len(each.worker) for each in start.workers)
    head = f"{count} {plural} loaded in {start.took_s:.1f} s"
    if count > 1:
        head += f" ({start.summed_s:.1f} s one after the other)"
    return [head, *(_line(each, width) for each in start.workers)]


def _line(worker: WorkerStart, width: int) -> str:
    parts = [
        f"{phase.replace('_', ' ')} {spent_s:.1f}"
        for phase, spent_s in worker.phases.items()
        if spent_s >= _NOTABLE_S
    ]
    return f"  {worker.worker:<{width}}  {worker.took_s:5.1f} s  {', '.join(parts)}".rstrip()
