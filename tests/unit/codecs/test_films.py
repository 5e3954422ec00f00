from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from duologue.codecs.films import FilmLimits, FilmReader
from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.core.errors import ClientError, LimitExceeded
from tests.unit.codecs.fmp4.film import pictures, tone

LIMITS = FilmLimits(1 << 20, 1 << 24, 100)


def film(count: int = 12, *, with_sound: bool = True) -> bytes:
    writer = Fmp4Writer(64, 48, 24, audio_rate_hz=48_000 if with_sound else None)
    sound = tone(2000 * count, 48_000) if with_sound else None
    return writer.add(pictures(count), sound) + writer.end()


def test_a_film_is_read_with_its_sound() -> None:
    reader = FilmReader(film(), LIMITS)
    info = reader.info
    assert (info.width, info.height, info.rate) == (64, 48, Fraction(24))
    assert sum(1 for _ in reader.pictures()) == 12
    sound = reader.sound()
    assert sound is not None
    samples, rate_hz = sound
    assert rate_hz == 48_000
    assert samples.shape[0] == 1
    assert np.abs(samples).max() > 0.2


def test_a_silent_film_has_none() -> None:
    assert FilmReader(film(with_sound=False), LIMITS).sound() is None


@pytest.mark.parametrize("data", [b"", b"no film at all", film()[:500]])
def test_what_is_no_film_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError):
        list(FilmReader(data, LIMITS).pictures())


def test_large_pictures_are_refused_by_the_header() -> None:
    with pytest.raises(LimitExceeded, match="64x48"):
        FilmReader(film(), FilmLimits(64 * 48 - 1, 1 << 24, 100))


def test_pictures_are_counted_whatever_the_header_says() -> None:
    reader = FilmReader(film(), LIMITS)
    reader._limits = FilmLimits(1 << 20, 1 << 24, 4)
    with pytest.raises(LimitExceeded, match="5 pictures"):
        list(reader.pictures())
