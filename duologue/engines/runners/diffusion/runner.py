"""The runner: requests of the same shape together, in slices, one batch at a time.

A pipeline of diffusers keeps state in itself, so one batch runs at a time; what comes meanwhile
waits and shares the next one. This module must not know models.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import structlog
import torch

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError, EngineError, OutOfMemory
from duologue.engines.lifecycle_port import OFFLOADED
from duologue.engines.media_payloads import DrawImage, MakeVideo
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.diffusion.batching import (
    Ask,
    ask_of,
    check_size,
    choose_batch,
    pixels_of,
    shape_of,
)
from duologue.engines.runners.diffusion.device_errors import is_full, is_lost
from duologue.engines.runners.diffusion.device_queue import DeviceQueue, queue_of
from duologue.engines.runners.diffusion.moving import Turn
from duologue.engines.runners.diffusion.pipelines import Load, Pipelines
from duologue.engines.runners.diffusion.running import Batch, BatchRun, Phase
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.sliced_work import SlicedWork
from duologue.engines.runners.diffusion.slicing import SliceBudget
from duologue.engines.runners.diffusion.vae_tiles import smaller_tiles
from duologue.engines.runners.diffusion.warming import Parts, measured, with_shorter_tiles
from duologue.engines.runners.registry import RunnerType, Wake

log = structlog.get_logger(__name__)
T = TypeVar("T")

DIFFUSION_FAILED = "diffusion_failed"
SHARED_AHEAD = 2
"""Parts that a GPU has yet to do when a slice could end: the shortest slice is one more. With
fewer, a small model's GPU rests whenever the host is at more than a block, as between steps."""

OWN_AHEAD = 3
"""As many where it is the worker's own: a cancel waits for them, less than a denoising step."""

OWN_PART_S = 0.010
"""There, points that come sooner after one another are passed by: to look at the device at each
block costs the host a tenth of a small picture's time."""

TILE_SHARE = 0.5
"""Of the longest slice: parts of a VAE's tiles are no longer. Where the calls' own steps take half
of their period, longer ones would find no slice."""

_PIXEL_BYTES = 12
"""Of a picture as the library gives it out: three colours, each a float32."""

_LIBRARY_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What a pipeline raises for arguments that it cannot use; the next request may be fine."""


@dataclass(slots=True)
class _Active:
    """The batch that runs.

    Args:
        jobs: Of each request; ``None`` where it is closed.
        phase: In which its slice has begun.
    """

    batch: Batch
    jobs: list[Job | None]
    phase: Phase = "begins"
    ended: bool = False
    error: EngineError | None = None

    def number_of(self, job: Job) -> int | None:
        return next((at for at, each in enumerate(self.jobs) if each is job), None)

    @property
    def is_wanted(self) -> bool:
        return any(job is not None and not job.cancelled for job in self.jobs)


class DiffusionRunner:
    """A diffusers pipeline behind ``step``: a step is one slice.

    ``Sliced``, ``LoadsInParts`` and ``HoldsMemory`` as well; ``slice_s`` is infinite on a device of
    its own.

    Args:
        load: Makes the pipeline; ``None``: from its folder.
        queue: Of the device; ``None``: as its name says.
    """

    def __init__(
        self,
        settings: DiffusionSettings,
        wake: Wake,
        clock: Clock | None = None,
        *,
        load: Load | None = None,
        queue: DeviceQueue | None = None,
    ) -> None:
        self.max_batch = 4096  # all that wait are offered, so that those that fit can be found
        self._settings = settings
        self._wake = wake
        self._clock = clock or SystemClock()
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._queue = queue or queue_of(settings.device)
        self.pipelines = Pipelines(settings, load)
        self.pipelines.add_points(self._point)
        self._work = SlicedWork("diffusion")
        self.turn: Turn = nullcontext
        self.longest_part_s = 0.0
        ahead = SHARED_AHEAD if self._queue.is_behind else 0
        self._budget = SliceBudget(settings.slice_ms / 1000, ahead)
        self.slice_s = self._longest_s = math.inf
        self._on_gpu = settings.device.startswith("cuda")
        self._bytes_per_pixel = settings.job_bytes_per_pixel or _PIXEL_BYTES
        self._looked_at = -math.inf
        """When the latest point was that was not passed by."""

        self._active: _Active | None = None
        self._alone: set[str] = set()
        """Jobs whose batch had no memory: each is tried by itself."""

    def warm_up(self) -> None:
        """Make a small one of what will be asked for, and measure its slices and its memory."""
        self._longest_s = self.slice_s
        self.pipelines.move(self._settings.device, self._device_turn)
        ask = self._warm_ask()
        if ask is not None:
            self.longest_part_s = max(self._warmed(ask).values())
        log.info("diffusion_ready", longest_part_ms=round(1000 * self.longest_part_s, 1))

    @property
    def resident_bytes(self) -> int:
        """Memory of the models."""
        return self.pipelines.model_bytes

    def job_bytes(self, job: Job) -> int:
        """Return what a request takes: its pixels alone say it."""
        return _pixels(job) * self._bytes_per_pixel

    def slice_shape(self, jobs: Sequence[Job]) -> Hashable:
        """Return the shape of the batch that runs; before one does there is none."""
        active = self._active
        if active is None or active.number_of(jobs[0]) is None:
            return None
        batch = active.batch
        return shape_of(batch.asks[0]), len(batch.asks), batch.phase

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

    def sleep(self, level: int) -> None:
        """Keep the weights in the host's memory, or let go of the thread that calls into them."""
        if level == OFFLOADED:
            self.pipelines.move("cpu", self._device_turn)
        else:
            self._work.close()

    def wake(self) -> None:
        """Have the weights on the device again."""
        self.pipelines.move(self._settings.device, self._device_turn)

    @contextmanager
    def _device_turn(self) -> Iterator[None]:
        """A part of what is done on the device outside of ``step``."""
        with self.turn():
            yield
            if self._is_shared:
                self._queue.finish()

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
        return BatchRun(self.pipelines, self._settings, batch, self._point, self._off_device).run

    def _make(self, ask: Ask) -> Parts:
        """Make one request whole, and measure its parts and its memory."""
        before_bytes = self._reset_peak()
        self._active = active = _Active(Batch([ask]), [Job("warm-up")])
        self._work.begin(self._run(active.batch))
        longest_s: Parts = {"begins": 0.0, "denoises": 0.0, "ends": 0.0}
        try:
            while not active.ended:
                phase = active.phase
                with self.turn():
                    active.ended = self._advance()
                longest_s[phase] = max(longest_s[phase], self.longest_part_s)
        finally:
            self._active = None
        self._measure_memory(ask, before_bytes)
        return longest_s

    def _warmed(self, ask: DrawImage | MakeVideo) -> Parts:
        """Have the VAE's tiles as large as their parts are short enough; returns as measured."""
        settings = self._settings
        short_s = self._longest_s * TILE_SHARE
        longest_s = measured(lambda: self._make(ask), short_s)
        vae = getattr(self.pipelines.base, "vae", None)
        if not self._is_shared or vae is None or settings.vae_tile:
            return longest_s
        tiles = smaller_tiles(vae, max(ask.width, ask.height))
        if tiles and not settings.vae_tiling and longest_s["ends"] > self._longest_s:
            raise ConfigError(
                f"the VAE works for {1000 * longest_s['ends']:.1f} ms at a time; on a device that "
                f"calls use it may for {1000 * self._longest_s:g} ms. Give it vae_tiling: true, or "
                "the model a device of its own"
            )
        if not settings.vae_tiling or longest_s["ends"] <= short_s:
            return longest_s
        return with_shorter_tiles(vae, tiles, lambda: self._make(ask), short_s, longest_s)

    def _advance(self) -> bool:
        """Run one slice; says whether its work has ended."""
        self._budget.slice_s = min(self.slice_s, self._settings.slice_ms / 1000)
        self._budget.begin(self._clock.now())
        try:
            return self._work.advance()
        finally:
            if self._is_shared:
                self._queue.finish()
            self._budget.end(self._clock.now())
            self.longest_part_s = self._budget.longest_part_s

    @property
    def _is_shared(self) -> bool:
        """Others use the device: a slice has ended when the device has done all of it."""
        return math.isfinite(self.slice_s)

    def _reset_peak(self) -> int:
        if not self._on_gpu:
            return 0
        torch.cuda.reset_peak_memory_stats(self._settings.device)
        return int(torch.cuda.memory_allocated(self._settings.device))

    def _measure_memory(self, ask: Ask, before_bytes: int) -> None:
        if self._on_gpu and not self._settings.job_bytes_per_pixel:
            peak_bytes = torch.cuda.max_memory_allocated(self._settings.device) - before_bytes
            self._bytes_per_pixel = max(_PIXEL_BYTES, -(-peak_bytes // pixels_of(ask)))

    def _slice(self, active: _Active) -> None:
        had_no_memory = False
        try:
            active.ended = self._advance()
        except EngineError as exc:
            active.error = exc
        except (MemoryError, *_LIBRARY_ERRORS) as exc:
            if is_lost(exc):
                raise  # another worker can begin anew; this one would fail all that is asked for
            had_no_memory = is_full(exc)
            if not had_no_memory:
                active.error = _failed(exc)
        if had_no_memory:
            # Only now: the exception is gone, and with it what its frames have held.
            self._out_of_memory(active)
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

    def _point(self) -> None:
        """In the sliced thread: go on, or hand the right to run back."""
        active = self._active
        must_end = active is not None and (active.batch.is_awaited or not active.is_wanted)
        if not must_end and self._passes_by():
            return
        self._queue.mark(SHARED_AHEAD if self._is_shared else OWN_AHEAD)
        if self._is_shared and active is not None:
            # A slice was waited for, so it is used up, but by work that its cost was asked for.
            must_end = must_end or active.batch.phase != active.phase
        if self._budget.is_used_up(self._clock.now(), must_end=must_end):
            if active is not None:
                active.phase = active.batch.phase
            self._work.pause()

    def _passes_by(self) -> bool:
        if self._is_shared or not self._queue.is_behind:
            return False
        now = self._clock.now()
        if now - self._looked_at < OWN_PART_S:
            return True
        self._looked_at = now
        return False

    def _off_device(self, work: Callable[[], T]) -> T:
        """In the sliced thread: do what keeps the host busy, and no GPU."""
        if not self._queue.is_behind:
            return work()
        self._queue.finish()
        began = self._clock.now()
        try:
            return work()
        finally:
            self._budget.leave_out(self._clock.now() - began)

    def _warm_ask(self) -> DrawImage | MakeVideo | None:
        settings = self._settings
        width, height = settings.warm_width, settings.warm_height
        if not width or not height:
            return None
        if settings.warm_pictures:
            return MakeVideo("", width, height, settings.warm_pictures, 16, 1, 1.0, 0)
        return DrawImage("", width, height, 1, 1.0, 0)


def _failed(exc: BaseException) -> EngineError:
    # Its text may quote what somebody asked for; the kind and the place do not.
    kind = type(exc).__name__
    log.warning("diffusion_failed", kind=kind)
    return EngineError(f"{kind} in the pipeline", code=DIFFUSION_FAILED)


def _pixels(job: Job) -> int:
    try:
        return pixels_of(ask_of(job.inputs[0]))
    except EngineError:
        return 0  # it will be refused


DIFFUSION = RunnerType(DiffusionSettings, DiffusionRunner, wakes_itself=True, sleep_levels=(1, 2))
