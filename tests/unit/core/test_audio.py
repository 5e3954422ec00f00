"""Runs of samples on a sample clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.core.audio import AudioFrame, ms_to_samples, samples_to_ms, silence

RATES_HZ = st.sampled_from([8000, 16000, 24000, 48000])


def test_a_frame_ends_where_the_next_one_begins() -> None:
    frame = AudioFrame(b"\x00\x00" * 320, 16000, 1000)
    assert (frame.samples, frame.end_sample) == (320, 1320)


@given(samples=st.integers(0, 10**9), rate_hz=RATES_HZ)
def test_milliseconds_are_whole_ones_that_have_passed(samples: int, rate_hz: int) -> None:
    duration_ms = samples_to_ms(samples, rate_hz)
    assert duration_ms * rate_hz <= samples * 1000 < (duration_ms + 1) * rate_hz


@given(duration_ms=st.integers(0, 10**7), rate_hz=RATES_HZ)
def test_whole_milliseconds_survive_the_way_to_samples_and_back(
    duration_ms: int, rate_hz: int
) -> None:
    assert samples_to_ms(ms_to_samples(duration_ms, rate_hz), rate_hz) == duration_ms


def test_part_of_a_sample_is_none() -> None:
    assert ms_to_samples(0.06, 16000) == 0
    assert ms_to_samples(0.07, 16000) == 1


def test_a_duration_may_be_larger_than_any_float() -> None:
    assert ms_to_samples(10**400, 16000) == 16 * 10**400


def test_silence_is_as_long_as_asked_and_silent() -> None:
    assert silence(3) == b"\x00" * 6
