"""The runner: requests of the same shape together, in slices, one batch at a time.

A pipeline of diffusers keeps state in itself, so one batch runs at a time; what comes meanwhile
waits and shares the next one. This module must not know models.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
import torch

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError, EngineError, OutOfMemory
from duologue.engines.media_payloads import DrawImage, MakeVideo
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.diffusion.batching import Ask, ask_of, check_size, choose_batch
from duologue.engines.runners.diffusion.pipelines import Pipelines
from duologue.engines.runners.diffusion.running import Batch, BatchRun
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.sliced_work import SlicedWork
from duologue.engines.runners.diffusion.slicing import SliceBudget
from duologue.engines.runners.registry import RunnerType, Wake

log = structlog.get_logger(__name__)

DIFFUSION_FAILED = "diffusion_failed"
_LIBRARY_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What a pipeline raises for arguments that it cannot use; the next request may be fine."""


@dataclass(slots=True)
class _Active:
    """The batch that runs.

    Args:
        jobs: Of each request; ``None`` where it is closed.
    """

    batch: Batch
    jobs: list[Job | None]
    ended: bool = False
    error: EngineError | None = None

    def number_of(self, job: Job) -> int | None:
        return next((at for at, each in enumerate(self.jobs) if each is job), None)

    @property
    def is_wanted(self) -> bool:
        return any(job is not None and not job.cancelled for job in self.jobs)


class DiffusionRunner:
    """A diffusers pipeline behind ``step``: a step is one slice."""

    def __init__(self, settings: DiffusionSettings, wake: Wake, clock: Clock | None = None) -> None:
        self.max_batch = 4096  # all that wait are offered, so that those that fit can be found
        self._settings = settings
        self._wake = wake
        self._clock = clock or SystemClock()
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self.pipelines = Pipelines(settings)
        self.pipelines.add_points(lambda: self._point(False))
        self._work = SlicedWork("diffusion")
        self._budget = SliceBudget(settings.slice_ms / 1000)
        self._active: _Active | None = None
        self._alone: set[str] = set()
        """Jobs whose batch had no memory: each is tried by itself."""

    def warm_up(self) -> None:
        """Make a small one of what will be asked for, and measure the smallest slice."""
        ask = self._warm_ask()
        if ask is not None:
            self._work.begin(self._run(Batch([ask])))
            done = False
            while not done:
                self._budget.begin(self._clock.now())
                done = self._work.advance()
        longest_ms = round(1000 * self._budget.longest_part_s, 1)
        log.info("diffusion_ready", longest_part_ms=longest_ms)
        if self._settings.shared and longest_ms > self._settings.slice_ms:
            raise ConfigError(
                f"the smallest slice of this pipeline takes {longest_ms} ms, and slice_ms is "
                f"{self._settings.slice_ms:g}: it cannot share a device with calls, give it its own"
            )

    def open(self, job: Job) -> None:
        """Nothing is needed before a batch begins."""

    def ready(self, job: Job) -> bool:
        """Its batch runs, or no batch does and it waits for one."""
        if self._active is None:
            return bool(job.inputs)
        return self._active.number_of(job) is not None

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Run one slice of the batch that runs; begin one where none does."""
        refused: dict[str, EngineError] = {}
        if self._active is None:
            refused = self._begin(jobs)
        active = self._active
        if active is not None and not active.ended:
            self._slice(active)
        return [self._result(job, refused) for job in jobs]

    def close(self, job: Job) -> None:
        """Leave its batch; one that nobody is left in ends at once."""
        self._alone.discard(job.id)
        active = self._active
        number = None if active is None else active.number_of(job)
        if active is None or number is None:
            return
        active.jobs[number] = None
        if not any(active.jobs):
            self._work.abandon()
            self._active = None
            self._wake()

    def _begin(self, jobs: Sequence[Job]) -> dict[str, EngineError]:
        """Begin a batch; returns what is refused of those that wait."""
        refused: dict[str, EngineError] = {}
        asks: dict[str, Ask] = {}
        waiting: list[Job] = []
        for job in jobs:
            try:
                ask = ask_of(job.inputs[0])
                check_size(ask, self._settings.max_total_pixels)
            except EngineError as exc:
                refused[job.id] = exc
            else:
                asks[job.id] = ask
                waiting.append(job)
        if waiting:
            self._start(self._chosen(waiting, asks), asks)
        return refused

    def _chosen(self, waiting: Sequence[Job], asks: dict[str, Ask]) -> list[Job]:
        if waiting[0].id in self._alone:
            return [waiting[0]]
        together = [job for job in waiting if job.id not in self._alone]
        settings = self._settings
        return choose_batch(
            together, lambda job: asks[job.id], settings.max_batch, settings.max_total_pixels
        )

    def _start(self, chosen: Sequence[Job], asks: dict[str, Ask]) -> None:
        batch = Batch([asks[job.id] for job in chosen])
        self._active = _Active(batch, list(chosen))
        self._work.begin(self._run(batch))

    def _run(self, batch: Batch) -> Callable[[], None]:
        return BatchRun(self.pipelines, self._settings, batch, self._point).run

    def _slice(self, active: _Active) -> None:
        self._budget.begin(self._clock.now())
        try:
            active.ended = self._work.advance()
        except EngineError as exc:
            active.error = exc
        except (torch.OutOfMemoryError, MemoryError):
            self._out_of_memory(active)
        except _LIBRARY_ERRORS as exc:
            # Its text may quote what somebody asked for; the kind and the place do not.
            active.error = EngineError(
                f"{type(exc).__name__} in the pipeline", code=DIFFUSION_FAILED
            )
            log.warning("diffusion_failed", kind=type(exc).__name__)
        if active.error is not None:
            active.ended = True
            self._clean_up()

    def _out_of_memory(self, active: _Active) -> None:
        """Fail a request that had the device for itself; others are tried again, each alone."""
        left = [job for job in active.jobs if job is not None]
        if len(left) == 1:
            active.error = OutOfMemory("no memory was left for this request")
            return
        self._alone.update(job.id for job in left)
        self._active = None
        self._clean_up()

    def _clean_up(self) -> None:
        gc.collect()
        self.pipelines.free()

    def _result(self, job: Job, refused: dict[str, EngineError]) -> Step:
        if job.id in refused:
            job.inputs.popleft()
            return Step(error=refused[job.id])
        active = self._active
        number = None if active is None else active.number_of(job)
        if active is None or number is None:
            return Step()
        outputs = active.batch.take(number)
        if not active.ended:
            return Step(outputs)
        job.inputs.popleft()
        return Step(outputs, done=active.error is None, error=active.error)

    def _point(self, must_end: bool) -> None:
        """In the sliced thread: go on, or hand the right to run back."""
        active = self._active
        abandoned = active is not None and not active.is_wanted
        if self._budget.is_used_up(self._clock.now(), must_end=must_end or abandoned):
            self._work.pause()

    def _warm_ask(self) -> Ask | None:
        settings = self._settings
        width, height = settings.warm_width, settings.warm_height
        if not width or not height:
            return None
        if settings.warm_pictures:
            return MakeVideo("", width, height, settings.warm_pictures, 16, 1, 1.0, 0)
        return DrawImage("", width, height, 1, 1.0, 0)


DIFFUSION = RunnerType(DiffusionSettings, DiffusionRunner, wakes_itself=True)
