"""Signed 16-bit little-endian PCM to and from the floats that models take.

This module must not know rates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FULL_SCALE = 32768.0
_QUIET_ROOM = 0.003
"""Root of the mean square, full scale at 1."""


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
    # Clipped first: the largest floats have no product.
    within = np.nan_to_num(samples.clip(-1, 1), nan=0.0)
    rounded: NDArray[np.floating] = np.rint(within * _FULL_SCALE).clip(-32768, 32767)
    return rounded.astype("<i2").tobytes()


def is_loud(pcm: bytes, rate_hz: int) -> bool:
    """Tell whether some 32 ms of it are louder than a quiet room."""
    window = rate_hz * 32 // 1000
    samples = np.frombuffer(pcm, "<i2").astype(np.float32)
    whole = samples[: len(samples) // window * window].reshape(-1, window)
    return bool(np.any(np.mean(whole * whole, axis=1) >= (_QUIET_ROOM * _FULL_SCALE) ** 2))
