"""Where the time of a tick goes: waiting to begin, on the device, in the collector, before it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.prepared import PreparedFrames
from duologue.engines.runners.streaming_lm.tick_loop import TickLoop
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import FrameBatch, FrameDeadline


@dataclass(frozen=True)
class Tick:
    """One step.

    Args:
        due: When it was to begin, ``began`` and ``done``: when it did, and when its outputs lay
            there.
        run_s: From the inputs' way to the device to the outputs' way back, of all of that.
        prefill_s: Prefills since the tick before; ``collector_s``: of the garbage, meanwhile.
    """

    due: float
    began: float
    done: float
    rows: int
    run_s: float
    prefill_s: float
    collector_s: float

    @property
    def took_s(self) -> float:
        return self.done - self.due

    def __str__(self) -> str:
        ms = [
            f"{name} {1000 * value:.1f}"
            for name, value in (
                ("due -> began", self.began - self.due),
                ("began -> done", self.done - self.began),
                ("of it sent, run and fetched", self.run_s),
                ("collector", self.collector_s),
                ("prefill before", self.prefill_s),
            )
        ]
        return f"{self.rows} rows, ms: {', '.join(ms)}"


def print_slowest(ticks: Sequence[Tick], count: int = 5) -> None:
    for tick in sorted(ticks, key=lambda each: -each.took_s)[:count]:
        print(f"  slow tick: {tick}", flush=True)


class Collections:
    """How long the collector of garbage has been at it."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._since = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _info: dict[str, Any]) -> None:
        if phase == "start":
            self._since = time.monotonic()
        else:
            self.total_s += time.monotonic() - self._since

    def end(self) -> None:
        gc.callbacks.remove(self._note)


class TimedFrames:
    """A prepared step that says how long it took."""

    def __init__(self, job: PreparedFrames) -> None:
        self.job, self.pcm, self.places = job, job.pcm, job.places
        self.took_s = 0.0

    def run(self) -> object:
        started = time.monotonic()
        try:
            return self.job.run()
        finally:
            self.took_s += time.monotonic() - started


class Watched(FrameDeadline):
    """The scheduler, and what became of each tick.

    Args:
        name_of: Tells whose slot one is.
    """

    def __init__(self, *args: Any, engine: FrameEngine, name_of: Callable[[int], str]) -> None:
        super().__init__(*args)
        self.ticks: list[Tick] = []
        self.waits_s: list[float] = []
        """Of frames whose client was not behind: from their last sample until they were ready."""
        self.first_ticks: dict[str, float] = {}
        """When the first tick of each began."""
        self.collections = Collections()
        self.prefill_s = 0.0
        self._engine = engine
        self._name_of = name_of
        self._fresh: set[int] = set()
        self._began = 0.0
        self._jobs = {count: TimedFrames(job) for count, job in engine._frames.items()}
        engine._frames = dict(self._jobs)  # type: ignore[arg-type]

    def end(self) -> None:
        """Give back what was put into the engine."""
        self.collections.end()
        self._engine._frames = {count: timed.job for count, timed in self._jobs.items()}

    def join(self, slot: int, *args: Any) -> int:
        self._fresh.add(slot)
        return super().join(slot, *args)

    def next_batch(self, now: float) -> FrameBatch | float | None:
        batch = super().next_batch(now)
        if isinstance(batch, FrameBatch):
            self._began = now
            for cut in batch.cuts if self._fresh else ():
                if cut.slot in self._fresh:
                    self._fresh.discard(cut.slot)
                    self.first_ticks[self._name_of(cut.slot)] = now
        return batch

    def finished(self, batch: FrameBatch, now: float) -> None:
        super().finished(batch, now)
        run_s = sum(job.took_s for job in self._jobs.values())
        collector_s = self.collections.total_s
        tick = Tick(
            batch.due, self._began, now, len(batch.cuts), run_s, self.prefill_s, collector_s
        )
        self.ticks.append(tick)
        self.waits_s += [now - cut.since for cut in batch.cuts if not cut.in_debt]
        self.prefill_s = self.collections.total_s = 0.0
        for job in self._jobs.values():
            job.took_s = 0.0


class WatchedLoop(TickLoop):
    """The loop of the runner, whose prefills are timed."""

    def watch(self, scheduler: Watched) -> None:
        self._scheduler = self.watched = scheduler

    def _read(self, chunk: int, clock: Callable[[], float]) -> None:
        started = time.monotonic()
        super()._read(chunk, clock)
        self.watched.prefill_s += time.monotonic() - started
