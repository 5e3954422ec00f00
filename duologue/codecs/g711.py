"""G.711 mu-law and A-law, one byte a sample, to and from signed 16-bit PCM.

The tables are computed from the segments of the standard and looked up with one numpy call. This
module must not know rates.

Source:
    ITU-T G.711 (1988), tables 1 and 2. PCM of 16 bits stands for the standard's 14 (mu-law) and 13
    (A-law) bits with zeros below, and is truncated to them before it is coded.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_ULAW_BIAS = 33
"""In units of 14-bit samples; makes the segments start at powers of two."""

_ULAW_CLIP = 8158
_ALAW_TOGGLED_BITS = 0x55
"""A-law inverts every other bit, so that silence is not a run of zeros on the line."""


def decode_ulaw(ulaw: bytes) -> bytes:
    """Return the PCM of mu-law bytes."""
    return _decoded(ulaw, _ulaw_to_pcm())


def encode_ulaw(pcm: bytes) -> bytes:
    """Return the mu-law bytes of PCM."""
    return _encoded(pcm, _pcm_to_ulaw())


def decode_alaw(alaw: bytes) -> bytes:
    """Return the PCM of A-law bytes."""
    return _decoded(alaw, _alaw_to_pcm())


def encode_alaw(pcm: bytes) -> bytes:
    """Return the A-law bytes of PCM."""
    return _encoded(pcm, _pcm_to_alaw())


def _decoded(coded: bytes, table: NDArray[np.int16]) -> bytes:
    return table.take(np.frombuffer(coded, np.uint8)).tobytes()


def _encoded(pcm: bytes, table: NDArray[np.uint8]) -> bytes:
    return table.take(np.frombuffer(pcm, "<u2")).tobytes()


def _all_samples() -> NDArray[np.int32]:
    """Every 16-bit sample, in the order of its bit pattern."""
    return np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _segment(magnitude: NDArray[np.int32], first_bit: int) -> NDArray[np.int32]:
    """Which doubling a magnitude lies in: 0 below ``2 ** (first_bit + 1)``, then one more each."""
    edges = 1 << np.arange(first_bit + 1, first_bit + 8)
    return np.searchsorted(edges, magnitude, side="right").astype(np.int32)


@cache
def _pcm_to_ulaw() -> NDArray[np.uint8]:
    sample = _all_samples()
    magnitude = np.minimum(np.abs(sample) >> 2, _ULAW_CLIP) + _ULAW_BIAS
    segment = _segment(magnitude, 5)
    step = magnitude >> (segment + 1) & 0x0F
    sign = np.where(sample < 0, 0x80, 0)
    code: NDArray[np.int32] = ~(sign | segment << 4 | step) & 0xFF
    return code.astype(np.uint8)


@cache
def _ulaw_to_pcm() -> NDArray[np.int16]:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    segment, step = code >> 4 & 7, code & 0x0F
    magnitude = ((2 * step + 33) << segment) - _ULAW_BIAS
    return np.where(code & 0x80, -4 * magnitude, 4 * magnitude).astype("<i2")


@cache
def _pcm_to_alaw() -> NDArray[np.uint8]:
    sample = _all_samples()
    # Negative samples mirror about -1/2, not about 0: both signs have the same number of steps.
    magnitude = np.where(sample < 0, ~sample, sample) >> 4
    segment = _segment(magnitude, 3)
    step = magnitude >> np.maximum(segment - 1, 0) & 0x0F
    sign = np.where(sample < 0, 0, 0x80)
    code: NDArray[np.int32] = (sign | segment << 4 | step) ^ _ALAW_TOGGLED_BITS
    return code.astype(np.uint8)


@cache
def _alaw_to_pcm() -> NDArray[np.int16]:
    code = np.arange(256, dtype=np.int32) ^ _ALAW_TOGGLED_BITS
    segment, step = code >> 4 & 7, code & 0x0F
    low = 2 * step + 1
    magnitude = np.where(segment == 0, low, (low + 32) << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, 8 * magnitude, -8 * magnitude).astype("<i2")
