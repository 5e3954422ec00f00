"""A model that does not let its interpreter go, as a native call without a thought for others.

In a worker of its own it harms nobody; in a thread of the server everything else stands still.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import msgspec

from duologue.engines.payloads import AudioChunk
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

HELD_S = 2.0


class HolderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It has none."""


class InterpreterHolder:
    """Answers everything with a bit of sound, after a while in which no other thread runs."""

    max_batch = 1

    def __init__(self) -> None:
        self._libc = ctypes.PyDLL(None)  # unlike CDLL it holds on to the interpreter

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Begin."""

    def ready(self, job: Job) -> bool:
        """There is something to answer."""
        return bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Hold everybody up."""
        for job in jobs:
            job.inputs.clear()
        self._libc.usleep(int(HELD_S * 1_000_000))
        return [Step((AudioChunk(bytes(4800), 24_000),), done=True)]

    def close(self, job: Job) -> None:
        """End."""


HOLDER = RunnerType(HolderSettings, lambda _settings, _wake: InterpreterHolder())
