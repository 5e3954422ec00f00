"""Runs requests on a runner as a worker does, and the same requests on the library itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch

from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage
from duologue.engines.payloads import Payload
from duologue.engines.runners.contract import Job
from duologue.engines.runners.diffusion.runner import DiffusionRunner
from duologue.engines.runners.diffusion.settings import DiffusionSettings

WORDS = {"max_sequence_length": 32}
CAT = DrawImage("a cat on a chair", 64, 48, 3, 3.0, 7)


def runner_of(folder: Path, **how: Any) -> DiffusionRunner:
    how.setdefault("call", WORDS)
    settings = DiffusionSettings(folder=str(folder), **how)
    return DiffusionRunner(settings, lambda: None)


class Driven:
    """One worker's jobs, by the order in which they were asked for."""

    def __init__(self, runner: DiffusionRunner, *asks: Payload) -> None:
        self.runner = runner
        self.jobs = [Job(f"job{number}", input_ended=True) for number in range(len(asks))]
        self.outputs: list[list[Payload]] = [[] for _ in asks]
        self.errors: list[EngineError | None] = [None] * len(asks)
        self.open = list(self.jobs)
        self.steps = 0
        for job, ask in zip(self.jobs, asks, strict=True):
            job.inputs.append(ask)
            runner.open(job)

    def step(self) -> None:
        """Do what a worker does in one turn."""
        for job in [each for each in self.open if each.cancelled]:
            self._close(job)
        ready = [job for job in self.open if self.runner.ready(job)]
        if not ready:
            return
        self.steps += 1
        for job, step in zip(ready, self.runner.step(ready), strict=True):
            number = self.jobs.index(job)
            self.outputs[number] += step.outputs
            self.errors[number] = step.error
            if step.done or step.error is not None or job.cancelled:
                self._close(job)

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if condition():
                return
            self.step()
        raise AssertionError("it never came to that")

    def finish(self) -> Driven:
        self.until(lambda: not self.open)
        return self

    def of(self, kind: type, number: int = 0) -> list[Any]:
        return [each for each in self.outputs[number] if isinstance(each, kind)]

    def _close(self, job: Job) -> None:
        self.open.remove(job)
        self.runner.close(job)


def library(folder: Path, use: str = "", **call: Any) -> Any:
    """What the library makes of a call, loaded anew."""
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
    if use:
        kind = getattr(diffusers, use)
        pipe = kind(**pipe.components) if not use.startswith("Wan") else kind.from_pipe(pipe)
    pipe.set_progress_bar_config(disable=True)
    seed = call.pop("seed")
    return pipe(generator=torch.Generator().manual_seed(seed), **call)


def pixels(picture: Any) -> Any:
    """As the library makes them for a PIL image."""
    return (np.asarray(picture) * 255).round().astype(np.uint8)
