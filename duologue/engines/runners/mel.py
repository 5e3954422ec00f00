"""The log-mel spectrogram that Whisper and its kin take, in numpy.

A frame every 10 ms, 25 ms wide, 80 bands. The bands are on the mel scale of Slaney's Auditory
Toolbox, with filters of equal area. This module must not know models.

Source:
    Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022, section
    2.2. M. Slaney, "Auditory Toolbox", 1998, function ``mfcc``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RATE_HZ = 16_000
HOP_SAMPLES = 160
WINDOW_SAMPLES = 400
BANDS = 80

_REACH = WINDOW_SAMPLES // 2
"""A frame looks this far to both sides of its centre, which is a multiple of the hop."""

_FLOOR = np.float32(1e-10)
SILENCE = np.float32(-10.0)
"""The value of a frame in which there is nothing: the logarithm of the floor."""

_RANGE = np.float32(8.0)
"""Whatever is more than 80 dB below the loudest value is as good as silent."""

_BLOCK_FRAMES = 128
"""Spectra of so many frames stay in the second-level cache: a third faster than all at once."""


def log_mel(samples: Floats) -> Floats:
    """Return a frame for every whole hop of ``samples``, mirrored at both ends.

    Shapes:
        samples: [n] float32, more than 200 of them
        returns: [n // 160, 80] float32, base 10 logarithms of power
    """
    padded = np.pad(samples, _REACH, mode="reflect")
    return _frames(padded, len(samples) // HOP_SAMPLES)


def as_features(frames: Floats, length: int) -> Floats:
    """Fill up with silence, limit the range and scale to what the models were trained on.

    Shapes:
        frames:  [up to length, 80] float32, as ``log_mel`` gives
        returns: [1, 80, length] float32
    """
    features = np.full((1, BANDS, length), SILENCE, np.float32)
    features[0, :, : len(frames)] = frames.T
    loudest = frames.max(initial=SILENCE)
    np.maximum(features, loudest - _RANGE, out=features)
    features += np.float32(4.0)
    features *= np.float32(0.25)
    return features


class LogMelStream:
    """The log-mel frames of audio that grows, each computed as soon as its window is complete.

    However it is cut, frames are those of the whole audio with silence after it, to within the
    rounding of floats.
    """

    def __init__(self) -> None:
        self._samples = np.empty(0, np.float32)
        self._frames = np.empty((0, BANDS), np.float32)
        self._count = 0
        self._frame_count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def samples(self) -> Floats:
        """What was appended and not dropped. Not to be kept: it changes with the next call."""
        return self._samples[: self._count]

    def append(self, samples: Floats) -> None:
        """Add audio and compute the frames that it completes."""
        end = self._count + len(samples)
        self._samples = _with_room(self._samples, self._count, end)
        self._samples[self._count : end] = samples
        self._count = end
        # The first frame mirrors the sample just past its window as well.
        complete = max(0, (end - _REACH - 1) // HOP_SAMPLES + 1)
        if complete > self._frame_count:
            self._frames = _with_room(self._frames, self._frame_count, complete)
            new = self._compute(self._frame_count, complete, end)
            self._frames[self._frame_count : complete] = new
            self._frame_count = complete

    def frames(self, end_sample: int) -> Floats:
        """Return the frames of all audio before ``end_sample``, as if silence followed there.

        Shapes:
            returns: [frames that hear anything of it, 80] float32
        """
        end = min(end_sample, self._count)
        if end <= 0:
            return self._frames[:0]
        heard = -(-(end + _REACH) // HOP_SAMPLES)
        complete = min(self._frame_count, max(0, (end - _REACH - 1) // HOP_SAMPLES + 1))
        return np.concatenate((self._frames[:complete], self._compute(complete, heard, end)))

    def drop_before(self, sample: int) -> None:
        """Forget audio before ``sample``, rounded down to a whole hop, which becomes sample 0.

        Frames that look across the border keep what they saw there.
        """
        hops = min(sample // HOP_SAMPLES, self._frame_count)
        kept = self._samples[hops * HOP_SAMPLES : self._count].copy()
        self._samples, self._count = kept, len(kept)
        self._frames = self._frames[hops : self._frame_count].copy()
        self._frame_count -= hops

    def _compute(self, first: int, last: int, end: int) -> Floats:
        """Frames ``first`` to ``last`` of the samples before ``end``, with silence after them."""
        begin = first * HOP_SAMPLES - _REACH
        window = np.zeros((last - first - 1) * HOP_SAMPLES + WINDOW_SAMPLES, np.float32)
        missing = max(0, -begin)
        heard = self._samples[max(0, begin) : min(end, begin + len(window))]
        window[missing : missing + len(heard)] = heard
        if missing:
            mirror = self._samples[1 : min(end, missing + 1)]
            window[missing - len(mirror) : missing] = mirror[::-1]
        return _frames(window, last - first)


def _with_room(array: Floats, used: int, needed: int) -> Floats:
    """Return an array of at least ``needed`` rows with the first ``used`` ones kept."""
    if len(array) >= needed:
        return array
    grown = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), np.float32)
    grown[:used] = array[:used]
    return grown


def _frames(padded: Floats, count: int) -> Floats:
    """Log-mel frames of ``count`` windows, the first at the start of ``padded``."""
    windows = sliding_window_view(padded, WINDOW_SAMPLES)[::HOP_SAMPLES]
    power = np.empty((count, BANDS), np.float32)
    for start in range(0, count, _BLOCK_FRAMES):
        block = windows[start : min(count, start + _BLOCK_FRAMES)] * _HANN
        spectrum = np.fft.rfft(block, axis=1)
        energy = spectrum.real**2
        energy += spectrum.imag**2
        np.matmul(energy, _MEL_FILTERS, out=power[start : start + len(block)])
    np.maximum(power, _FLOOR, out=power)
    return np.log10(power, out=power)


_LINEAR_MELS = 15.0
"""Below 1 kHz the scale is linear, 200/3 Hz a mel; above, 27 mels take it to 6.4 kHz."""


def _mel_to_hz(mel: float) -> float:
    if mel < _LINEAR_MELS:
        return mel * 200.0 / 3.0
    return 1000.0 * math.exp((mel - _LINEAR_MELS) * math.log(6.4) / 27.0)


def _mel_filters() -> Floats:
    """Triangles between neighbouring edges, each of the same area.

    Shapes:
        returns: [201, 80] float32
    """
    nyquist_hz = RATE_HZ / 2
    top = _LINEAR_MELS + math.log(nyquist_hz / 1000.0) * 27.0 / math.log(6.4)
    edges = np.array([_mel_to_hz(top * i / (BANDS + 1)) for i in range(BANDS + 2)])
    bins = np.linspace(0.0, nyquist_hz, WINDOW_SAMPLES // 2 + 1)[:, None]
    low, peak, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (bins - low) / (peak - low)
    falling = (high - bins) / (high - peak)
    triangles = np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (high - low))
    return np.asarray(triangles, np.float32)


_HANN = np.hanning(WINDOW_SAMPLES + 1)[:-1].astype(np.float32)
_MEL_FILTERS = _mel_filters()
