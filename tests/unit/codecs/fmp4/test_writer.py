from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from duologue.codecs.fmp4.writer import Fmp4Writer
from tests.unit.codecs.fmp4.film import boxes, pictures, tone


def test_every_picture_leaves_at_once_and_can_be_shown() -> None:
    writer = Fmp4Writer(64, 48, 24)
    pieces = [writer.add([picture]) for picture in pictures(30)]
    assert writer.end() == b""
    assert all(b"moof" in piece for piece in pieces), "nothing is held back"
    assert [kind for kind, _ in boxes(pieces[0])][:2] == [b"ftyp", b"moov"]
    assert writer.mime.startswith('video/mp4; codecs="avc1.42C0')

    with av.open(io.BytesIO(b"".join(pieces))) as film:
        shown = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(shown) == 30
    for number, frame in enumerate(shown):
        assert abs(float(frame.mean()) - (20 + 4 * number)) < 3, f"picture {number}"


@pytest.mark.parametrize("rate", [24, Fraction(30_000, 1001)])
def test_times_do_not_drift(rate: int | Fraction) -> None:
    writer = Fmp4Writer(64, 48, rate)
    data = b"".join(writer.add([picture]) for picture in pictures(50)) + writer.end()
    with av.open(io.BytesIO(data)) as film:
        times = [frame.time for frame in film.decode(video=0)]
    assert times == pytest.approx([number / float(rate) for number in range(50)], abs=2e-4)


def test_sound_begins_with_the_pictures_and_is_what_it_was() -> None:
    writer = Fmp4Writer(64, 48, 24, audio_rate_hz=48_000)
    data = b"".join(
        writer.add([picture], tone(2000, 48_000, 2000 * number))
        for number, picture in enumerate(pictures(48))
    )
    data += writer.end()
    assert writer.mime.endswith(', mp4a.40.2"')
    with av.open(io.BytesIO(data)) as film:
        heard = np.concatenate([frame.to_ndarray()[0] for frame in film.decode(audio=0)])
    with av.open(io.BytesIO(data)) as film:
        assert sum(1 for _ in film.decode(video=0)) == 48
    wanted = tone(96_000, 48_000)[0]
    assert len(heard) >= len(wanted) - 1024
    middle = slice(10_000, 60_000)
    assert np.abs(heard[middle] - wanted[middle]).mean() < 0.02, "and not a frame late"


def test_several_pictures_may_share_a_fragment() -> None:
    writer = Fmp4Writer(64, 48, 24)
    data = writer.add(pictures(12))
    assert [kind for kind, _ in boxes(data)].count(b"moof") == 1
    with av.open(io.BytesIO(data)) as film:
        assert sum(1 for _ in film.decode(video=0)) == 12


def test_odd_sides_are_refused() -> None:
    with pytest.raises(ValueError, match="63x48"):
        Fmp4Writer(63, 48, 24)
