"""A voice that says the same recorded sentences whatever it is to say: for what only speech shows.

Imported by worker processes; must not know the callers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import soundfile

from duologue.codecs.resample import StreamResampler
from duologue.engines.payloads import AudioChunk, SpeakText
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

RATE_HZ = 24_000
PIECE_BYTES = RATE_HZ * 2 // 10
CLIPS = Path(__file__).parents[1] / "models" / "speech"
ANSWER = ("0870", "0880", "0890", "0930")


class RecordedSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to set."""


@cache
def speech(*numbers: str) -> bytes:
    """Return sentences, read aloud: s16le mono at 24 kHz."""
    read = [soundfile.read(CLIPS / f"austen_{number}.flac") for number in numbers]
    (rate_hz,) = {rate_hz for _, rate_hz in read}
    samples = np.concatenate([samples for samples, _ in read])
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    return StreamResampler(rate_hz, RATE_HZ).process(pcm)


class RecordedVoice:
    """Says them once for each text."""

    max_batch = 16

    def warm_up(self) -> None:
        """Read the recordings."""
        speech(*ANSWER)

    def open(self, job: Job) -> None:
        """Begin with nothing to say."""
        job.state = deque()

    def ready(self, job: Job) -> bool:
        """Something is to be said, or everything was."""
        return bool(job.state or job.inputs or job.input_ended)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Say the next piece of each job."""
        return [self._say(job, cast(deque[bytes], job.state)) for job in jobs]

    def close(self, job: Job) -> None:
        """Forget it."""
        job.state = None

    def _say(self, job: Job, pieces: deque[bytes]) -> Step:
        if not pieces and job.inputs:
            assert isinstance(job.inputs.popleft(), SpeakText)
            said = speech(*ANSWER)
            pieces.extend(said[n : n + PIECE_BYTES] for n in range(0, len(said), PIECE_BYTES))
        outputs = (AudioChunk(pieces.popleft(), RATE_HZ),) if pieces else ()
        return Step(outputs, done=job.input_ended and not job.inputs and not pieces)


VOICE = RunnerType.plain(RecordedSettings, lambda _settings: RecordedVoice())
