"""Signed 16-bit PCM to and from 32-bit floats on the wire, little-endian.

This module must not know rates.
"""

from __future__ import annotations

import numpy as np

from duologue.codecs.pcm import float_to_pcm

FLOAT_BYTES = 4


def encode_float(pcm: bytes) -> bytes:
    """Return the samples as floats in [-1, 1).

    Raises:
        ValueError: ``pcm`` ends in the middle of a sample.
    """
    return (np.frombuffer(pcm, "<i2").astype("<f4") * np.float32(1 / 32768)).tobytes()


class FloatReader:
    """Reads one stream of floats, cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, wire: bytes) -> bytes:
        """Return the samples that are complete now; what is out of range is clipped."""
        wire = self._rest + wire if self._rest else wire
        whole = len(wire) - len(wire) % FLOAT_BYTES
        self._rest = wire[whole:]
        return float_to_pcm(np.frombuffer(wire[:whole], "<f4"))

    def drop_rest(self) -> int:
        """Forget a sample that is not whole; returns how many bytes of it there were."""
        dropped, self._rest = len(self._rest), b""
        return dropped
