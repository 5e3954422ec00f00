from __future__ import annotations

import numpy as np
import pytest

from duologue.sessions.echo.band_levels import (
    BANDS,
    ROWS_PER_S,
    SILENCE,
    Floats,
    bank_for,
    likeness_at_delays,
)


def tone(rate_hz: int, hz: float, seconds: float = 0.5) -> Floats:
    time = np.arange(int(rate_hz * seconds)) / rate_hz
    return (0.3 * np.sin(2 * np.pi * hz * time)).astype(np.float32)


def noise(rows: int, seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((rows, BANDS)).astype(np.float32)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
def test_a_row_every_ten_milliseconds_whatever_the_rate(rate_hz: int) -> None:
    bank = bank_for(rate_hz)
    levels = bank.levels(tone(rate_hz, 1000))
    assert levels.shape == (bank.rows(rate_hz // 2), BANDS)
    assert bank.rows(bank.samples(7)) == 7
    assert bank.rows(bank.samples(7) - 1) == 6
    assert bank.rows(10) == 0
    assert abs(len(levels) - ROWS_PER_S // 2) <= 1


def test_the_same_sound_has_the_same_levels_at_every_rate() -> None:
    low, high = (bank_for(hz).levels(tone(hz, 1000)) for hz in (16000, 24000))
    assert low.argmax(1).tolist()[:40] == high.argmax(1).tolist()[:40]
    assert np.abs(low.max(1)[:40] - high.max(1)[:40]).max() < 0.2


def test_silence_has_the_lowest_level() -> None:
    levels = bank_for(16000).levels(np.zeros(1600, np.float32))
    assert levels.max() == levels.min() == SILENCE


@pytest.mark.parametrize("delay", [0, 1, 17, 50])
def test_what_was_played_is_found_at_its_delay(delay: int) -> None:
    played = noise(82, seed=1)
    end = len(played) - delay
    alike = likeness_at_delays(played[end - 32 : end] - 3, played)
    assert alike is not None
    assert alike.shape == (51,)
    assert int(alike.argmax()) == delay
    assert alike[delay] == pytest.approx(1, abs=1e-4)


def test_two_sounds_are_not_alike() -> None:
    alike = likeness_at_delays(noise(32, seed=2), noise(82, seed=1))
    assert alike is not None
    assert alike.max() < 0.4


def test_what_is_steady_is_like_nothing() -> None:
    assert likeness_at_delays(np.ones((32, BANDS), np.float32), noise(82, seed=1)) is None
    alike = likeness_at_delays(noise(32, seed=1), np.ones((82, BANDS), np.float32))
    assert alike is not None
    assert alike.max() == 0
