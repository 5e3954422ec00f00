from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.transcription.windows import WINDOW_RATE_HZ, Window, WindowCutter


def noise(seconds: float, level: float = 3000.0) -> bytes:
    samples = np.random.default_rng(3).normal(0, level, round(seconds * WINDOW_RATE_HZ))
    return samples.clip(-32768, 32767).astype("<i2").tobytes()


def silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * WINDOW_RATE_HZ))


def windows_of(pcm: bytes, window_s: float = 4.0, piece: int = 32_000) -> list[Window]:
    cutter = WindowCutter(window_s)
    found = [w for at in range(0, len(pcm), piece) for w in cutter.feed(pcm[at : at + piece])]
    return [*found, *cutter.finish()]


def test_what_fits_is_one_window() -> None:
    pcm = noise(3)

    assert windows_of(pcm) == [Window(pcm, 0)]


def test_long_audio_is_cut_where_it_is_quietest() -> None:
    pcm = noise(2.6) + silence(0.4) + noise(3)

    first, second = windows_of(pcm)

    assert 2.6 < first.end_sample / WINDOW_RATE_HZ < 3.0
    assert second.start_sample == first.end_sample


def test_silence_is_known_and_a_whisper_is_none() -> None:
    assert Window(silence(2), 0).is_silent
    assert Window(noise(2, 1.0), 0).is_silent
    assert not Window(noise(2, 100.0), 0).is_silent
    assert not Window(silence(2) + noise(0.05), 0).is_silent
    assert Window(b"", 0).is_silent


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=8), st.sampled_from([1.0, 2.5]))
def test_windows_are_the_audio_whatever_its_pieces(lengths: list[int], window_s: float) -> None:
    pcm = noise(sum(lengths) / WINDOW_RATE_HZ)
    cutter = WindowCutter(window_s)
    found: list[Window] = []
    start = 0
    for length in lengths:
        found += cutter.feed(pcm[2 * start : 2 * (start + length)])
        start += length
    assert cutter.samples == start
    found += cutter.finish()

    assert b"".join(window.pcm for window in found) == pcm[: 2 * start]
    assert all(len(window.pcm) <= 2 * window_s * WINDOW_RATE_HZ for window in found)
    ends = [0, *(window.end_sample for window in found)]
    assert [window.start_sample for window in found] == ends[:-1]
    assert all(window.pcm for window in found)
