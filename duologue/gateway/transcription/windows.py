"""Long audio in windows that a recogniser can take, cut where it is quietest.

This module must not know recognisers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from duologue.codecs import pcm_to_float
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples

WINDOW_RATE_HZ = 16_000

_CUT_FROM = 0.5
"""A window is cut in its second half: short ones cost as much to hear, and know less context."""

_HOP = ms_to_samples(10, WINDOW_RATE_HZ)
_QUIET_HOPS = 20
"""The quietest 200 ms; a cut in their middle is 100 ms from the words on both sides."""

_SILENT_DBFS = -65.0
"""No microphone hears words so quiet."""


@dataclass(frozen=True, slots=True)
class Window:
    """A run of s16le mono samples at ``WINDOW_RATE_HZ``, and where it begins."""

    pcm: bytes
    start_sample: int

    @property
    def end_sample(self) -> int:
        """Just past its last sample."""
        return self.start_sample + len(self.pcm) // SAMPLE_BYTES

    @property
    def is_silent(self) -> bool:
        """There is nothing in it that anybody could hear."""
        loudest = max(_hop_power(self.pcm), default=0.0)
        return bool(loudest <= 10 ** (_SILENT_DBFS / 10))


class WindowCutter:
    """Takes audio piece by piece, gives windows as soon as they are complete.

    Args:
        window_s: Longest window.
    """

    def __init__(self, window_s: float) -> None:
        self._window_bytes = int(window_s * WINDOW_RATE_HZ) * SAMPLE_BYTES
        self._waiting = bytearray()
        self._start = 0

    @property
    def samples(self) -> int:
        """How much audio came in."""
        return self._start + len(self._waiting) // SAMPLE_BYTES

    def feed(self, pcm: bytes) -> Iterator[Window]:
        """Add audio, whole samples; yields windows that are complete now."""
        self._waiting += pcm
        while len(self._waiting) > self._window_bytes:
            yield self._take(_quietest(bytes(self._waiting[: self._window_bytes])))

    def finish(self) -> Iterator[Window]:
        """Say that no audio follows; yields the rest."""
        if self._waiting:
            yield self._take(len(self._waiting))

    def _take(self, length: int) -> Window:
        window = Window(bytes(self._waiting[:length]), self._start)
        del self._waiting[:length]
        self._start = window.end_sample
        return window


def _quietest(pcm: bytes) -> int:
    """Where to cut, in bytes."""
    power = _hop_power(pcm)
    first = int(len(power) * _CUT_FROM)
    runs = sliding_window_view(power[first:], _QUIET_HOPS).sum(axis=1)
    # The last of equals: digital silence leaves a choice, and a longer window knows more.
    quietest = first + len(runs) - 1 - int(np.argmin(runs[::-1]))
    return (quietest + _QUIET_HOPS // 2) * _HOP * SAMPLE_BYTES


def _hop_power(pcm: bytes) -> np.ndarray:
    """Mean power of each 10 ms, of full scale; a rest at the end counts as one more.

    Shapes:
        returns: [hops] float32
    """
    samples = pcm_to_float(pcm)
    hops = np.pad(samples, (0, -len(samples) % _HOP)).reshape(-1, _HOP)
    return np.asarray(np.einsum("ij,ij->i", hops, hops) / np.float32(_HOP))
