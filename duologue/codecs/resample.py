"""Streaming conversion between sample rates, for live audio.

A resampler for files works in large blocks and keeps back as much: tens of milliseconds that a
conversation would hear. This one is a plain polyphase filter, which keeps back about 3 ms. This
module must not know encodings.

Why exact arithmetic: filter taps are whole multiples of 2**-16 and samples are integers, so every
product and sum is exact in a double. The result does not depend on the order of summation, hence
not on how the audio was cut into messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

_PASS_EDGE, _STOP_EDGE = 0.85, 1.08
"""Transition band in units of the lower rate's Nyquist frequency: no fold-over below 0.92 of it."""

_STOPBAND_DB = 70.0
_TAP_SCALE = 65536
_BLOCKS_PER_S = 1000
"""The filter works in blocks of about 1 ms: fewer, larger products, for 1 ms more delay."""


class StreamResampler:
    """Converts one mono stream of signed 16-bit PCM, message by message.

    Any cutting of the input gives the same output, also within a sample. With equal rates the
    bytes pass through untouched.
    """

    __slots__ = (
        "_filter",
        "_from_hz",
        "_given",
        "_half_sample",
        "_taken",
        "_to_hz",
        "_waiting",
    )

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from_hz, self._to_hz = from_hz, to_hz
        self._filter = None if from_hz == to_hz else _polyphase(from_hz, to_hz)
        self._half_sample = b""
        self._waiting = self._silence()
        self._taken = self._given = 0

    def process(self, pcm: bytes) -> bytes:
        """Return what can be converted so far; the rest comes with the next call or ``flush``."""
        if self._half_sample:
            pcm = self._half_sample + pcm
            self._half_sample = b""
        if len(pcm) % 2:
            pcm, self._half_sample = pcm[:-1], pcm[-1:]
        if self._filter is None:
            return pcm
        samples = np.frombuffer(pcm, "<i2")
        self._taken += len(samples)
        return self._convert(samples)

    def drop_half_sample(self) -> int:
        """Forget a byte that waits for the other half of its sample.

        Returns:
            How many bytes were dropped: 0 or 1.
        """
        dropped = len(self._half_sample)
        self._half_sample = b""
        return dropped

    def flush(self) -> bytes:
        """Return the tail, and start anew; half a sample at the end is dropped.

        All output since the last flush lasts as long as its input, to the nearest sample.
        """
        self.drop_half_sample()
        tail = b""
        if self._filter is not None and self._taken:
            padding = np.zeros(self._filter.window + self._filter.block_in, np.int16)
            due = (self._taken * self._to_hz + self._from_hz // 2) // self._from_hz
            missing = due - self._given
            tail = self._convert(padding)[: 2 * missing]
        self._waiting = self._silence()
        self._taken = self._given = 0
        return tail

    def _silence(self) -> NDArray[np.float64]:
        """What the first output looks back on."""
        return np.zeros(0 if self._filter is None else self._filter.past)

    def _convert(self, samples: NDArray[np.int16]) -> bytes:
        fir = self._filter
        assert fir is not None
        waiting: NDArray[np.float64] = np.concatenate((self._waiting, samples))
        blocks = (len(waiting) - fir.window) // fir.block_in + 1
        if blocks <= 0:
            self._waiting = waiting
            return b""
        # Overlapping windows without a copy: each starts one block after the one before.
        stride = waiting.itemsize
        windows: NDArray[np.float64] = np.ndarray(
            (blocks, fir.window), np.float64, waiting, 0, (stride * fir.block_in, stride)
        )
        converted = windows @ fir.taps
        self._waiting = waiting[blocks * fir.block_in :]
        np.rint(converted, out=converted)
        np.minimum(converted, 32767, out=converted)  # np.clip costs twice as much
        np.maximum(converted, -32768, out=converted)
        self._given += converted.size
        return converted.astype("<i2").tobytes()


@dataclass(frozen=True, slots=True)
class _Polyphase:
    """A filter that turns ``window`` samples into one block of output.

    Shapes:
        taps: [window, block_out] float64
    """

    taps: NDArray[np.float64]
    window: int
    block_in: int
    past: int
    """How many samples of the window lie before the block."""


@cache
def _polyphase(from_hz: int, to_hz: int) -> _Polyphase:
    common = math.gcd(from_hz, to_hz)
    up, down = to_hz // common, from_hz // common
    repeats = max(1, round(common / _BLOCKS_PER_S))
    block_in, block_out = down * repeats, up * repeats
    prototype = _lowpass(from_hz * up, min(from_hz, to_hz) / 2)
    half = len(prototype) // 2
    past = half // up
    window = past + ((block_out - 1) * down + half) // up + 1
    taps = np.zeros((window, block_out))
    for output in range(block_out):
        # On the grid of both rates, where input t stands at t * up and this output at its place.
        position = (np.arange(window) - past) * up
        tap = output * down - position + half
        inside = (tap >= 0) & (tap < len(prototype))
        taps[inside, output] = _exact(prototype[tap[inside]])
    taps.flags.writeable = False
    return _Polyphase(taps, window, block_in, past)


def _lowpass(grid_hz: int, nyquist_hz: float) -> NDArray[np.float64]:
    """A windowed sinc on the grid of both rates.

    Source:
        Kaiser's formulas for window shape and length, from attenuation and transition width.
    """
    width_hz = (_STOP_EDGE - _PASS_EDGE) * nyquist_hz
    cutoff = (_STOP_EDGE + _PASS_EDGE) / 2 * nyquist_hz / grid_hz
    length = (_STOPBAND_DB - 8) / (2.285 * 2 * math.pi * width_hz / grid_hz)
    half = math.ceil(length / 2)
    place = np.arange(-half, half + 1)
    shape = np.kaiser(2 * half + 1, 0.1102 * (_STOPBAND_DB - 8.7))
    return np.asarray(np.sinc(2 * cutoff * place) * shape)


def _exact(phase: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round taps to multiples of 2**-16 that sum to exactly one, so that a level stays a level."""
    taps = np.rint(phase * (_TAP_SCALE / phase.sum()))
    taps[np.argmax(taps)] += _TAP_SCALE - taps.sum()
    return np.asarray(taps / _TAP_SCALE)
