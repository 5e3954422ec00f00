"""An end-of-turn model that knows nothing: it always says the same.

With it ``semantic_vad`` works where no weights are: how long a silence ends a turn is then a matter
of ``eagerness`` alone. This module must not know when it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, EndOfTurn
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType


class FixedEndOfTurnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``fixed_end_of_turn``.

    Args:
        probability: What it always says; 0 ends no turn before its silence is long enough.
        max_batch: How many jobs one step may take.
    """

    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 256


class FixedEndOfTurnRunner:
    """Counts the audio of a job, and answers when its input has ended."""

    def __init__(self, settings: FixedEndOfTurnSettings) -> None:
        self.max_batch = settings.max_batch
        self._probability = settings.probability

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Nothing was heard yet."""
        job.state = 0

    def ready(self, job: Job) -> bool:
        """There is audio to take, or all of it is here."""
        return bool(job.inputs) or job.input_ended

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Take what is here; answer once nothing more will come."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Forget the job."""
        job.state = None

    def _step_one(self, job: Job) -> Step:
        while job.inputs:
            payload = job.inputs.popleft()
            if not isinstance(payload, AudioChunk):
                kind = type(payload).__name__
                return Step(error=EngineError(f"an end-of-turn model takes audio, not {kind}"))
            job.state = payload.start_sample + len(payload.pcm) // SAMPLE_BYTES
        if not job.input_ended:
            return Step()
        return Step((EndOfTurn(self._probability, job.state),), done=True)


FIXED_END_OF_TURN = RunnerType.plain(
    FixedEndOfTurnSettings, FixedEndOfTurnRunner, sleep_levels=(2,)
)
