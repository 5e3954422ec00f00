from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.stretch import TimeStretch
from tests.fakes.sound_files import RATE_HZ, level, loudest_hz, tone

PCM = tone(2.0).tobytes()


def stretched(tempo: float, piece: int = 9600) -> np.ndarray:
    stretch = TimeStretch(RATE_HZ, tempo)
    parts = [stretch.process(PCM[at : at + piece]) for at in range(0, len(PCM), piece)]
    return np.frombuffer(b"".join([*parts, stretch.flush()]), "<i2")


@pytest.mark.parametrize("tempo", [0.25, 0.5, 0.8, 1.3, 2.0, 4.0])
def test_the_pace_changes_and_the_pitch_stays(tempo: float) -> None:
    samples = stretched(tempo)

    assert len(samples) / RATE_HZ == pytest.approx(2.0 / tempo, abs=0.05)
    assert abs(loudest_hz(samples, RATE_HZ) - 440) < 6
    assert level(samples) == pytest.approx(8000, rel=0.1)


def test_sound_comes_out_while_it_goes_in() -> None:
    stretch = TimeStretch(RATE_HZ, 0.5)
    stretch.process(PCM[:9600])

    assert len(stretch.process(PCM[9600:19200])) > 9600


def test_nothing_is_made_of_nothing() -> None:
    stretch = TimeStretch(RATE_HZ, 2.0)

    assert stretch.process(b"") == b""
    assert stretch.flush() == b""
