"""Smart Turn: judges from the sound of the last 8 seconds whether a turn is complete.

A job takes the turn so far as ``AudioChunk`` and, once its input has ended, gives one
``EndOfTurn``. This module must not know when to ask, or what to do with the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from duologue.codecs import pcm_to_float
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, EndOfTurn
from duologue.engines.runners import mel
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.onnx_cpu import open_onnx
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ, SpeechStream

Floats = NDArray[np.float32]

HEARD_S = 8
"""What came earlier does not count."""

_HEARD_SAMPLES = HEARD_S * SPEECH_RATE_HZ
_FRAMES = _HEARD_SAMPLES // mel.HOP_SAMPLES
_VARIANCE_FLOOR = np.float32(1e-7)

Infer = Callable[[Floats], float]
"""Features [1, 80, 800] -> probability that the turn is complete."""


class SmartTurnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``smart_turn``.

    Args:
        model_path: Path of the ONNX file.
        threads: Threads of one judgement. A second one saves a fifth of the time on free cores, and
            is in the way of the recogniser, which works at the same moment.
    """

    model_path: str
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1


@dataclass(slots=True)
class _Turn:
    stream: SpeechStream = field(default_factory=SpeechStream)
    pcm: bytearray = field(default_factory=bytearray)
    heard: int = 0
    """Samples of the turn at 16 kHz, also those that are forgotten again."""


class SmartTurnRunner:
    """One judgement a step: a second one at the same time would delay the first."""

    max_batch = 1

    def __init__(self, infer: Infer) -> None:
        self._infer = infer

    def warm_up(self) -> None:
        """Judge silence."""
        self._infer(turn_features(b""))

    def open(self, job: Job) -> None:
        """Begin with an empty turn."""
        job.state = _Turn()

    def ready(self, job: Job) -> bool:
        """There is audio to take, or all of it is here."""
        return bool(job.inputs) or job.input_ended

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Take what is here; judge once nothing more will come."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Forget the turn."""
        job.state = None

    def _step_one(self, job: Job) -> Step:
        turn = cast(_Turn, job.state)
        while job.inputs:
            _append(turn, job.inputs.popleft())
        if not job.input_ended:
            return Step()
        _keep(turn, turn.stream.finish())
        if not turn.heard:
            raise EngineError("there is no audio to judge the end of a turn by")
        probability = self._infer(turn_features(bytes(turn.pcm)))
        if not math.isfinite(probability):
            raise EngineError(f"the model found no probability in {turn.heard} samples")
        end_sample = turn.stream.clock_sample(turn.heard)
        return Step((EndOfTurn(probability, end_sample),), done=True)


def turn_features(pcm: bytes) -> Floats:
    """What the model takes: 8 s, silence before the turn, of unit variance.

    Shapes:
        returns: [1, 80, 800] float32
    """
    samples = np.zeros(_HEARD_SAMPLES, np.float32)
    heard = pcm_to_float(pcm)[-_HEARD_SAMPLES:]
    samples[_HEARD_SAMPLES - len(heard) :] = heard
    samples -= samples.mean()
    samples /= np.sqrt(samples.var() + _VARIANCE_FLOOR)
    return mel.as_features(mel.log_mel(samples), _FRAMES)


def load_infer(settings: SmartTurnSettings) -> Infer:
    """Load the network."""
    session = open_onnx(settings.model_path, settings.threads)

    def infer(features: Floats) -> float:
        return float(session.run(None, {"input_features": features})[0][0, 0])

    return infer


def build(settings: SmartTurnSettings) -> SmartTurnRunner:
    """Load the network and make the runner."""
    return SmartTurnRunner(load_infer(settings))


SMART_TURN = RunnerType.plain(SmartTurnSettings, build, sleep_levels=(2,))


def _append(turn: _Turn, payload: object) -> None:
    if not isinstance(payload, AudioChunk):
        raise EngineError(f"an end-of-turn model takes audio, not {type(payload).__name__}")
    _keep(turn, turn.stream.append(payload))


def _keep(turn: _Turn, pcm: bytes) -> None:
    turn.heard += len(pcm) // SAMPLE_BYTES
    turn.pcm += pcm
    del turn.pcm[: max(0, len(turn.pcm) - _HEARD_SAMPLES * SAMPLE_BYTES)]
