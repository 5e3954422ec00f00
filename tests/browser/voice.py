"""Speech for the tests: synthesised, so that nobody's voice is in the repository."""

from __future__ import annotations

import wave
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hibari import SAMPLE_RATE, Hibari

Pcm = npt.NDArray[np.int16]

RATE_HZ = SAMPLE_RATE
PEAK = 16_000


@lru_cache(maxsize=1)
def _voice() -> Hibari:
    return Hibari()


@lru_cache(maxsize=32)
def speech(text: str) -> Pcm:
    """Return the text as speech at ``RATE_HZ``, always the same for the same text."""
    samples = np.asarray(_voice()(text, seed=1), dtype=np.float64)
    return np.round(samples * PEAK / np.max(np.abs(samples))).astype(np.int16)


def silence(seconds: float) -> Pcm:
    """Return digital silence."""
    return np.zeros(round(seconds * RATE_HZ), dtype=np.int16)


def tone(frequency_hz: float, seconds: float) -> Pcm:
    """Return a sine."""
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return np.round(0.3 * 32767 * np.sin(2 * np.pi * frequency_hz * time_s)).astype(np.int16)


def write_wav(path: Path, *parts: Pcm) -> Path:
    """Write the parts one after another and return the path."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(np.concatenate(parts).tobytes())
    return path
