"""Whether a frame can be heard. This module must not know who speaks."""

from __future__ import annotations

import numpy as np

FULL_SCALE = 32768.0


class Loudness:
    """Tells quiet frames from others.

    Args:
        quiet_dbfs: The root mean square below which a frame is quiet, against full scale.
    """

    __slots__ = ("_quiet",)

    def __init__(self, quiet_dbfs: float) -> None:
        self._quiet = (FULL_SCALE * 10 ** (quiet_dbfs / 20)) ** 2

    def is_quiet(self, pcm: bytes) -> bool:
        """Judge s16le samples."""
        if not pcm:
            return True
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        return float(samples @ samples) <= self._quiet * len(samples)
