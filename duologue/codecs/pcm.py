"""Signed 16-bit little-endian PCM to and from the floats that models take.

This module must not know rates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FULL_SCALE = 32768.0


def pcm_to_float(pcm: bytes) -> NDArray[np.float32]:
    """Return the samples as float32 in [-1, 1).

    Shapes:
        returns: [samples] float32
    Raises:
        ValueError: ``pcm`` ends in the middle of a sample.
    """
    return np.frombuffer(pcm, "<i2").astype(np.float32) * np.float32(1 / _FULL_SCALE)


def float_to_pcm(samples: NDArray[np.floating]) -> bytes:
    """Return the samples as PCM; what lies outside [-1, 1) is clipped, NaN becomes silence."""
    scaled = np.nan_to_num(samples * _FULL_SCALE, nan=0.0, posinf=32767.0, neginf=-32768.0)
    rounded: NDArray[np.floating] = np.rint(scaled).clip(-32768, 32767)
    return rounded.astype("<i2").tobytes()
