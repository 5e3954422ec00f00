"""Sound as levels of bands, a hundred times a second, and how alike two such pictures are.

This module must not know what is compared, or why.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float32]

ROWS_PER_S = 100
WINDOW_S = 0.02

BANDS = 16
_LOWEST_HZ = 150
_HIGHEST_HZ = 3800
"""What every microphone, loudspeaker and codec lets through."""

_SCALE = 100.0
FLOOR = 1.0
"""Power in a band below which levels are not told apart: about 70 dB below full scale."""

SILENCE = 0.0
"""Its level."""

_STEADY = 0.05
"""Mean square of the levels' movement (in nepers) below which nothing rises and falls."""


class Bank:
    """Levels of bands in rows of 10 ms, at one sample rate."""

    def __init__(self, rate_hz: int) -> None:
        self.hop = rate_hz // ROWS_PER_S
        self._window = int(rate_hz * WINDOW_S)
        self._shape = np.hanning(self._window).astype(np.float32) * np.float32(_SCALE)
        # The same power at every rate, whatever the number of samples in a window.
        self._shape *= np.float32(320 / self._window)
        edges = np.geomspace(_LOWEST_HZ, _HIGHEST_HZ, BANDS + 1)
        bins = np.fft.rfftfreq(self._window, 1 / rate_hz)
        band = np.searchsorted(edges, bins, side="right") - 1
        self._sums = (band[:, None] == np.arange(BANDS)[None, :]).astype(np.float32)

    def rows(self, samples: int) -> int:
        """How many rows so many samples make."""
        return (samples - self._window) // self.hop + 1 if samples >= self._window else 0

    def samples(self, rows: int) -> int:
        """How many samples so many rows take."""
        return (rows - 1) * self.hop + self._window

    def levels(self, samples: Floats) -> Floats:
        """Return the level of each band in each row.

        Shapes:
            samples: [N]
            returns: [rows, BANDS]
        """
        windows = sliding_window_view(samples, self._window)[:: self.hop] * self._shape
        spectrum = np.fft.rfft(windows, axis=1)
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
        levels: Floats = np.log(power @ self._sums + np.float32(FLOOR))
        return levels


@cache
def bank_for(rate_hz: int) -> Bank:
    """Return the bank of a rate; there are few, and each takes a while to make."""
    return Bank(rate_hz)


def likeness_at_delays(heard: Floats, played: Floats) -> Floats | None:
    """Correlate the rise and fall of the levels at every delay; ``None`` where nothing does.

    Shapes:
        heard: [N, B], played: [N + L, B], both ending now
        returns: [L + 1], the first without delay
    """
    rows = len(heard)
    moved = heard - heard.mean(0)
    energy = float((moved * moved).sum())
    if energy < _STEADY * moved.size:
        return None
    # [L + 1, B, N], the newest first
    views: NDArray[Any] = sliding_window_view(played, rows, axis=0)[::-1]
    means = views.mean(2)
    energies = np.einsum("lbn,lbn->l", views, views) - rows * (means * means).sum(1)
    products = np.einsum("lbn,nb->l", views, moved)
    steady = energies < _STEADY * moved.size
    likeness = products / np.sqrt(np.maximum(energies, 1e-6) * energy)
    alike: Floats = np.where(steady, np.float32(0), likeness).astype(np.float32)
    return alike
