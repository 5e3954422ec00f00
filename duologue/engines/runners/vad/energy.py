"""The cheapest detector: loud is speech. Deterministic, hence also what tests with tones use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from duologue.core.audio import ms_to_samples
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ
from duologue.engines.runners.vad.voice_activity import VoiceActivityRunner

_FULL_SCALE = 32768.0
_SILENCE_DBFS = -120.0


class EnergyVadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``energy_vad``.

    Args:
        threshold_dbfs: Level at which the probability is one half.
        slope_db: How much louder makes it 0.73; 2.2 times as much makes it 0.9.
        window_ms: Length of a window.
        max_batch: How many jobs one step may take.
    """

    threshold_dbfs: Annotated[float, msgspec.Meta(ge=-100, le=0)] = -45.0
    slope_db: Annotated[float, msgspec.Meta(gt=0, le=40)] = 3.0
    window_ms: Annotated[int, msgspec.Meta(ge=10, le=40)] = 20
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 256


class EnergyDetector:
    """Compares the root mean square of a window with a threshold."""

    def __init__(self, settings: EnergyVadSettings) -> None:
        self.window_samples = ms_to_samples(settings.window_ms, SPEECH_RATE_HZ)
        self._threshold_dbfs = settings.threshold_dbfs
        self._slope_db = settings.slope_db

    def open(self) -> None:
        """Nothing is remembered."""

    def judge(self, memories: Sequence[None], windows: Sequence[bytes]) -> Sequence[float]:
        """Return a logistic function of each window's level."""
        return [self._probability(level_dbfs(window)) for window in windows]

    def _probability(self, level: float) -> float:
        # The difference is at most 220 dB, and the slope may be tiny: no exponent above 700.
        steps = min(700.0, (self._threshold_dbfs - level) / self._slope_db)
        return 1.0 / (1.0 + math.exp(steps))


def level_dbfs(pcm: bytes) -> float:
    """Root mean square of PCM in decibels below full scale; -120 for silence."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    power = float(np.dot(samples, samples)) / max(1, len(samples))
    if power <= 0.0:
        return _SILENCE_DBFS
    return 10.0 * math.log10(power / _FULL_SCALE**2)


def build(settings: EnergyVadSettings) -> VoiceActivityRunner:
    """Make the runner."""
    return VoiceActivityRunner(EnergyDetector(settings), settings.max_batch)


ENERGY_VAD = RunnerType.plain(EnergyVadSettings, build, sleep_levels=(2,))
