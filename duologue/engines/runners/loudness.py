"""A detector without a model: speech is what is loud.

For tests, benchmarks and quiet rooms. It answers each chunk of audio at once, so any chunking
gives the same edges to within a chunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, Payload, VoiceActivity
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

_STRIDE = 7
"""Every seventh sample tells how loud it is. 7 divides no rate, so no tone hides in the gaps."""


class LoudnessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``loudness``.

    Args:
        threshold: Peak, of 32,768, that counts as speech for certain; half of it for half.
    """

    threshold: int = 2_000
    max_batch: int = 256


class LoudnessRunner:
    """Compares peaks with a threshold."""

    def __init__(self, settings: LoudnessSettings) -> None:
        self.max_batch = settings.max_batch
        self._threshold = settings.threshold

    def warm_up(self) -> None:
        """Nothing gets faster."""

    def open(self, job: Job) -> None:
        """Nothing is kept between chunks."""

    def ready(self, job: Job) -> bool:
        """Audio is waiting."""
        return bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Judge all chunks that wait."""
        return [self._judge_all(job.inputs) for job in jobs]

    def close(self, job: Job) -> None:
        """Nothing was kept."""

    def _judge_all(self, inputs: deque[Payload]) -> Step:
        outputs: list[Payload] = []
        while inputs:
            payload = inputs.popleft()
            if not isinstance(payload, AudioChunk):
                kind = type(payload).__name__
                return Step(outputs, error=EngineError(f"a detector hears audio, not {kind}"))
            samples = memoryview(payload.pcm).cast("h")
            some = samples[::_STRIDE].tolist()
            peak = max(max(some), -min(some)) if some else 0
            probability = min(1.0, peak / self._threshold)
            outputs.append(VoiceActivity(probability, payload.start_sample + len(samples)))
        return Step(outputs)


LOUDNESS = RunnerType.plain(LoudnessSettings, LoudnessRunner)
