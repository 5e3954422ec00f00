"""A tone, and what can be measured of one."""

from __future__ import annotations

import math

import numpy as np

TONE_HZ = 1000
AMPLITUDE = 8000


def tone(rate_hz: int, seconds: float = 1.0) -> bytes:
    """Return a sine of 1 kHz as s16le PCM."""
    place = np.arange(int(rate_hz * seconds))
    wave = AMPLITUDE * np.sin(2 * math.pi * TONE_HZ * place / rate_hz)
    return np.rint(wave).astype("<i2").tobytes()


def loudest_hz(pcm: bytes, rate_hz: int) -> float:
    """Return the frequency of the strongest component, to a fraction of a hertz."""
    samples = np.frombuffer(pcm, "<i2").astype(float)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 8 * rate_hz))
    return float(np.argmax(spectrum)) / 8


def level_db(pcm: bytes, rate_hz: int) -> float:
    """Return the level in dB against that of ``tone``, without the first and last 50 ms."""
    margin = rate_hz // 20
    samples = np.frombuffer(pcm, "<i2").astype(float)[margin:-margin]
    return 20 * math.log10(math.sqrt(2 * np.mean(samples**2)) / AMPLITUDE)
