"""Colours and scales that all pictures of calls share. This module must not know what is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PAPER = "#fbfaf7"
INK = "#22242a"
FAINT = "#9a9ca3"
CALLER = "#1f7a8c"
DUOLOGUE = "#b5446e"
CUT = "#d1495b"
WAIT = "#e0a030"
WAIT_INK = "#a06a00"

STEP_S = 0.01
"""Loudness is drawn in steps of so much."""


def envelope(pcm: bytes, rate_hz: int) -> Floats:
    """Return the loudness of PCM in steps of 10 ms: mostly its peak, smoothed a little.

    Shapes:
        returns: [steps], 0 to 1
    """
    samples = np.abs(np.frombuffer(pcm, "<i2").astype(np.float64)) / 32768
    step = int(rate_hz * STEP_S)
    whole = len(samples) // step
    if not whole:
        return np.zeros(0)
    peaks: Floats = samples[: whole * step].reshape(whole, step).max(axis=1)
    smooth: Floats = np.convolve(peaks, (0.25, 0.5, 0.25), mode="same")
    return smooth
