"""Whisper's log-mel spectrogram in numpy, for the baseline's recogniser and end-of-turn model.

Source: "Robust Speech Recognition via Large-Scale Weak Supervision" (Radford et al., 2022), section
2.2, with the mel scale of Slaney's Auditory Toolbox (1998): linear below 1 kHz, then logarithmic.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
HOP_SAMPLES = 160
FRAMES_PER_S = SAMPLE_RATE_HZ // HOP_SAMPLES
WINDOW_SAMPLES = 400
MELS = 80
FLOOR = 1e-10
RANGE_LOG10 = 8.0

BREAK_HZ = 1000.0
BREAK_MEL = 15.0
MELS_PER_E_FOLD = 27.0 / np.log(6.4)

Floats = npt.NDArray[np.float32]


def log_mel(audio: Floats) -> Floats:
    """The features of 16 kHz audio, about -1 to 1, one frame for each full hop.

    Shapes:
        audio:   [T] float32
        returns: [80, T // 160] float32
    """
    half = WINDOW_SAMPLES // 2
    padded = np.pad(audio, half, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW_SAMPLES)[::HOP_SAMPLES]
    windows = windows[: len(audio) // HOP_SAMPLES]
    hann = np.hanning(WINDOW_SAMPLES + 1)[:-1].astype(np.float32)
    power = np.abs(np.fft.rfft(windows * hann, axis=1)) ** 2
    log10 = np.log10(np.maximum(mel_filters() @ power.T, FLOOR))
    log10 = np.maximum(log10, log10.max() - RANGE_LOG10)
    return ((log10 + 4.0) / 4.0).astype(np.float32)


@lru_cache
def mel_filters() -> npt.NDArray[np.float64]:
    """Triangles of equal area over the bins of the transform. Shape [80, 201]."""
    bins_hz = np.linspace(0.0, SAMPLE_RATE_HZ / 2, WINDOW_SAMPLES // 2 + 1)
    edges_hz = _hz(np.linspace(0.0, _mel(SAMPLE_RATE_HZ / 2), MELS + 2))
    low, centre, high = edges_hz[:-2, None], edges_hz[1:-1, None], edges_hz[2:, None]
    rising = (bins_hz - low) / (centre - low)
    falling = (high - bins_hz) / (high - centre)
    return np.maximum(0.0, np.minimum(rising, falling)) * 2.0 / (high - low)


def _mel(hz: float) -> float:
    if hz < BREAK_HZ:
        return hz * BREAK_MEL / BREAK_HZ
    return float(BREAK_MEL + np.log(hz / BREAK_HZ) * MELS_PER_E_FOLD)


def _hz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    linear = mel * BREAK_HZ / BREAK_MEL
    logarithmic = BREAK_HZ * np.exp((mel - BREAK_MEL) / MELS_PER_E_FOLD)
    return np.where(mel < BREAK_MEL, linear, logarithmic)
