from __future__ import annotations

import numpy as np
import pytest
from log_mel import log_mel, mel_filters
from speech import at_rate, first_audible_s, from_pcm16, pcm16, speech_end_s, speech_start_s

RATE_HZ = 1000


def burst(before: int, loud: int, after: int, peak: float = 0.5) -> np.ndarray:
    return np.pad(np.full(loud, peak, np.float32), (before, after))


def test_speech_reaches_from_its_first_to_its_last_loud_sample() -> None:
    audio = burst(100, 50, 30)
    assert speech_start_s(audio, RATE_HZ) == pytest.approx(0.1)
    assert speech_end_s(audio, RATE_HZ) == pytest.approx(0.15)


def test_speech_is_judged_against_its_own_peak() -> None:
    quiet = burst(100, 50, 30, peak=0.001)
    assert speech_end_s(quiet, RATE_HZ) == pytest.approx(0.15)


def test_what_is_audible_is_judged_against_full_scale() -> None:
    assert first_audible_s(burst(100, 50, 0), RATE_HZ) == pytest.approx(0.1)
    assert first_audible_s(burst(100, 50, 0, peak=0.009), RATE_HZ) is None


def test_pcm_survives_the_way_there_and_back() -> None:
    audio = np.linspace(-1, 1, 101, dtype=np.float32)
    assert np.abs(from_pcm16(pcm16(audio)) - audio).max() < 1e-4


def test_resampling_keeps_the_length_in_time() -> None:
    assert len(at_rate(np.zeros(24_000, np.float32), 24_000, 16_000)) == 16_000


@pytest.mark.parametrize("hz", [250.0, 1000.0, 4000.0])
def test_a_tone_lights_up_the_filter_at_its_frequency(hz: float) -> None:
    seconds = np.arange(16_000) / 16_000
    features = log_mel((0.5 * np.sin(2 * np.pi * hz * seconds)).astype(np.float32))
    assert features.shape == (80, 100)
    bins_hz = np.linspace(0, 8000, 201)
    centres_hz = bins_hz[mel_filters().argmax(axis=1)]
    assert abs(centres_hz[features.mean(axis=1).argmax()] - hz) <= max(60.0, 0.05 * hz)


def test_silence_is_flat_and_quiet() -> None:
    features = log_mel(np.zeros(1600, np.float32))
    assert np.ptp(features) == 0
    assert features.max() == pytest.approx((-10 + 4) / 4)
