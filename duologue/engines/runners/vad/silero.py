"""Silero's voice activity detector: a small recurrent network, good in noise, batched over jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from duologue.codecs import pcm_to_float
from duologue.engines.runners.onnx_cpu import open_onnx
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ
from duologue.engines.runners.vad.voice_activity import VoiceActivityRunner

Floats = NDArray[np.float32]

_WINDOW_SAMPLES = 512
_CONTEXT_SAMPLES = 64
_STATE_SHAPE = (2, 1, 128)

Infer = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""One window of each of B streams.

Shapes:
    audio [B, 576], state [2, B, 128] -> probability [B, 1], state [2, B, 128]
"""


class SileroVadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``silero_vad``.

    Args:
        model_path: Path of the ONNX file.
        threads: Threads of one step. Windows are so small that a second one gains nothing.
        max_batch: How many jobs one step may take.
    """

    model_path: str
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64


@dataclass(slots=True)
class _Memory:
    """What the network takes along: its state, and the end of the window before."""

    state: Floats
    context: Floats


class SileroDetector:
    """Runs the network on one window of many streams at a time."""

    window_samples = _WINDOW_SAMPLES

    def __init__(self, infer: Infer) -> None:
        self._infer = infer

    def open(self) -> _Memory:
        """Return the memory of silence."""
        return _Memory(
            np.zeros(_STATE_SHAPE, np.float32), np.zeros((1, _CONTEXT_SAMPLES), np.float32)
        )

    def judge(self, memories: Sequence[_Memory], windows: Sequence[bytes]) -> Sequence[float]:
        """Run one batch; each memory is moved on by its window."""
        audio = pcm_to_float(b"".join(windows)).reshape(-1, _WINDOW_SAMPLES)
        context = np.concatenate([memory.context for memory in memories])
        state = np.concatenate([memory.state for memory in memories], axis=1)
        probability, state = self._infer(np.concatenate((context, audio), axis=1), state)
        for row, memory in enumerate(memories):
            # Copies: a view would keep the arrays of the whole batch alive.
            memory.state = state[:, row : row + 1].copy()
            memory.context = audio[row : row + 1, -_CONTEXT_SAMPLES:].copy()
        return [float(value) for value in probability[:, 0]]


def load_infer(settings: SileroVadSettings) -> Infer:
    """Load the network."""
    session = open_onnx(settings.model_path, settings.threads)
    rate = np.array(SPEECH_RATE_HZ, np.int64)

    def infer(audio: Floats, state: Floats) -> tuple[Floats, Floats]:
        probability, new_state = session.run(None, {"input": audio, "state": state, "sr": rate})
        return probability, new_state

    return infer


def build(settings: SileroVadSettings) -> VoiceActivityRunner:
    """Load the network and make the runner."""
    return VoiceActivityRunner(SileroDetector(load_infer(settings)), settings.max_batch)


SILERO_VAD = RunnerType.plain(SileroVadSettings, build, sleep_levels=(2,))
