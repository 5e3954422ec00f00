"""A worker of the engine around a pipeline that was made here: its own loop, runner and turns.

Jobs come and go as from the engine; what is left out is the socket between the two.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from duologue.core.clock import SystemClock
from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.turns import BatchTurns, Refused, Turns
from duologue.engines.media_payloads import DrawImage, ImageData, StepsDone
from duologue.engines.messages import Cancel, JobEnded, JobOutput, Open, Ready, Report, Stop
from duologue.engines.runners.contract import Job, Runner
from duologue.engines.runners.diffusion.runner import DiffusionRunner
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.vae_tiles import kept_tiles
from duologue.engines.runners.registry import Built
from duologue.engines.schedulers import SCHEDULERS
from duologue.engines.stage_worker import StageWorker

PERIOD_S = 0.080
CALLS, PICTURES = 0, 1
"""Seats of a board."""

READY_S = 150.0


@dataclass(eq=False)
class Made:
    """One request.

    Args:
        began, ended: Moments; ``steps``: those at which a denoising step was told of.
        outcome: As of ``JobEnded``, with the code of an error.
    """

    began: float
    steps: list[float] = field(default_factory=list)
    image: bytes = b""
    ended: float = 0.0
    outcome: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    stepped: threading.Event = field(default_factory=threading.Event)

    @property
    def took_s(self) -> float:
        return self.ended - self.began

    def wait(self, timeout_s: float) -> Made:
        """Wait until it is made.

        Raises:
            RuntimeError: It was not.
        """
        if not self.over.wait(timeout_s):
            raise RuntimeError(f"not made within {timeout_s:.0f} s; {len(self.steps)} steps were")
        if self.outcome != "completed":
            raise RuntimeError(f"a request ended so: {self.outcome}")
        return self


@dataclass(frozen=True)
class Slice:
    """One that ran: what it was granted, what it took, and of which phase it was."""

    granted_s: float
    took_s: float
    part_s: float
    phase: str


class WatchedTurns(BatchTurns):
    """The turns of a worker beside calls, and what became of them.

    Args:
        shared: Change it between jobs: without, the device is as the worker's own.
    """

    def __init__(self, board: Board, runner: Runner, *, shared: bool = True) -> None:
        super().__init__(board, PICTURES, runner, "the device")
        self.shared = shared
        self.slices: list[Slice] = []
        self.waited = 0

    def wait_until(self, jobs: Sequence[Job], now: float) -> float | None:
        runner: Any = self._runner
        if not self.shared:
            runner.slice_s, self._began_at = math.inf, now
            return None
        cost_s = self._costs.of(self._shape(jobs))
        again_at = super().wait_until(jobs, now)
        self.waited += again_at is not None
        if again_at is None:
            self._granted_s = runner.slice_s + cost_s
        return again_at

    def stepped(self, jobs: Sequence[Job], now: float) -> Sequence[Refused]:
        if not self.shared:
            return ()
        runner: Any = self._runner
        shape: Any = self._shape_asked
        phase = "begins" if shape is None else shape[-1]
        took_s = now - self._began_at
        self.slices.append(Slice(self._granted_s, took_s, runner.longest_part_s, phase))
        return super().stepped(jobs, now)


class Studio:
    """A worker in a thread.

    Args:
        pipe: Of diffusers, on its device.
    """

    def __init__(
        self,
        pipe: Any,
        settings: DiffusionSettings,
        turns_of: Callable[[DiffusionRunner], Turns],
    ) -> None:
        self._jobs: dict[str, Made] = {}
        self._count = 0
        self._ready = threading.Event()
        self.died = ""
        self.runner: DiffusionRunner
        self.turns: Any = None

        def load(wake: Callable[[], None], _announce: object) -> Built:
            self.runner = DiffusionRunner(settings, wake, load=lambda _settings: pipe)
            return Built(self.runner, True)

        def share(_runner: Runner) -> Turns:
            self.turns = turns_of(self.runner)
            return self.turns

        self._worker = StageWorker(
            load=load,
            schedule=SCHEDULERS["fifo"],
            post=self._post,
            clock=SystemClock(),
            share=share,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_S) or self.died:
            raise RuntimeError(f"the worker did not become ready: {self.died or 'too slow'}")

    def ask(self, *asks: DrawImage) -> list[Made]:
        """Ask for pictures, at once."""
        now = time.monotonic()
        made = [Made(now) for _ in asks]
        opens = []
        for each, ask in zip(made, asks, strict=True):
            self._count += 1
            self._jobs[f"job {self._count}"] = each
            opens.append(Open(f"job {self._count}", ask))
        self._worker.receive(opens)
        return made

    def cancel(self, made: Made) -> None:
        """Nobody wants it any more."""
        key = next(key for key, each in self._jobs.items() if each is made)
        self._worker.receive([Cancel(key)])

    def stop(self) -> None:
        """End the worker."""
        self._worker.receive([Stop()])
        self._thread.join(20)

    def _run(self) -> None:
        try:
            self._worker.run()
        except BaseException as exc:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            traceback.print_exc()
            self.died = f"{type(exc).__name__}: {exc}"
        self._ready.set()
        for each in self._jobs.values():
            each.outcome = each.outcome or f"the worker died: {self.died}"
            each.stepped.set()
            each.over.set()

    def _post(self, report: Report) -> None:
        now = time.monotonic()
        for message in report.messages:
            if isinstance(message, Ready):
                self._ready.set()
            elif isinstance(message, JobOutput):
                made = self._jobs[message.job]
                if isinstance(message.payload, StepsDone):
                    made.steps.append(now)
                    made.stepped.set()
                elif isinstance(message.payload, ImageData):
                    made.image = message.payload.data
            elif isinstance(message, JobEnded):
                made = self._jobs.pop(message.job)
                made.ended = now
                made.outcome = message.outcome.value
                if message.code:
                    made.outcome += f" ({message.code}: {message.message})"
                made.stepped.set()
                made.over.set()


def studio_of(
    pipe: Any,
    sides: Sequence[int],
    turns_of: Callable[[DiffusionRunner], Turns],
    device: str,
    **more: Any,
) -> tuple[Studio, int]:
    """Return a worker that was warmed up with the first of some sizes whose slices are short."""
    give_tiles_back = kept_tiles(pipe.vae)
    for number, side in enumerate(sides):
        settings = settings_for(device, warm_width=side, warm_height=side, **more)
        try:
            return Studio(pipe, settings, turns_of), side
        except RuntimeError as exc:
            if number + 1 == len(sides):
                raise
            print(f"not with {side} x {side}: {exc}", flush=True)
            forget_points(pipe)
            give_tiles_back()
    raise AssertionError("there is no size")


def forget_points(pipe: Any) -> None:
    """Take the points of a runner that is gone out of a pipeline."""
    for part in pipe.components.values():
        if isinstance(part, torch.nn.Module):
            for module in part.modules():
                module._forward_pre_hooks.clear()
            for blend in [name for name in vars(part) if name.startswith("blend_")]:
                delattr(part, blend)


def request(seed: int, side: int, steps: int, guidance: float) -> DrawImage:
    """Return a request with words of its own, so that no cache answers it."""
    return DrawImage(f"a cat on chair number {seed}", side, side, steps, guidance, seed)


def settings_for(device: str, **more: Any) -> DiffusionSettings:
    """Return the settings of a pipeline that is not in a folder."""
    dtype = "bfloat16" if device.startswith("cuda") else "float32"
    return DiffusionSettings(folder="made here", device=device, dtype=dtype, **more)
