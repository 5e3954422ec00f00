from __future__ import annotations

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st

from duologue.codecs.resample import StreamResampler
from tests.unit.codecs.tones import level_db, loudest_hz, tone

RATES_HZ = (8000, 16000, 24000, 48000)
PAIRS = [(a, b) for a in RATES_HZ for b in RATES_HZ]
UNEQUAL_PAIRS = [(a, b) for a, b in PAIRS if a != b]


def in_pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, start = [], 0
    while start < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[start : start + size])
        start += size
    return pieces


@given(
    pair=st.sampled_from(PAIRS),
    samples=st.integers(0, 1500),
    sizes=st.lists(st.integers(1, 700), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_any_cutting_gives_the_same_bytes(
    pair: tuple[int, int], samples: int, sizes: list[int], seed: int
) -> None:
    noise = np.random.default_rng(seed).integers(-32768, 32768, samples, dtype="<i2").tobytes()
    whole, cut = StreamResampler(*pair), StreamResampler(*pair)
    expected = whole.process(noise) + whole.flush()
    got = b"".join(cut.process(piece) for piece in in_pieces(noise, sizes)) + cut.flush()
    assert got == expected


@given(pair=st.sampled_from(PAIRS), samples=st.integers(0, 3000))
def test_output_lasts_as_long_as_input_to_within_a_sample(
    pair: tuple[int, int], samples: int
) -> None:
    from_hz, to_hz = pair
    resampler = StreamResampler(from_hz, to_hz)
    out = len(resampler.process(bytes(2 * samples)) + resampler.flush()) / 2
    assert abs(out - samples * to_hz / from_hz) <= 1


@pytest.mark.parametrize(("from_hz", "to_hz"), UNEQUAL_PAIRS)
def test_a_tone_keeps_its_pitch_level_and_place(from_hz: int, to_hz: int) -> None:
    resampler = StreamResampler(from_hz, to_hz)
    out = resampler.process(tone(from_hz)) + resampler.flush()
    assert loudest_hz(out, to_hz) == pytest.approx(1000, abs=0.5)
    assert level_db(out, to_hz) == pytest.approx(0, abs=0.05)
    inner = slice(to_hz // 20, -to_hz // 20)
    difference = np.frombuffer(out, "<i2")[inner].astype(int) - np.frombuffer(tone(to_hz), "<i2")[
        inner
    ].astype(int)
    assert np.abs(difference).max() <= 8


@pytest.mark.parametrize(("from_hz", "to_hz"), UNEQUAL_PAIRS)
def test_at_most_3_ms_are_kept_back(from_hz: int, to_hz: int) -> None:
    resampler = StreamResampler(from_hz, to_hz)
    given_samples = 0
    for message in range(1, 51):
        given_samples += len(resampler.process(bytes(from_hz // 25))) // 2
        kept_back_ms = message * 20 - given_samples / to_hz * 1000
        assert kept_back_ms <= 3.0


@pytest.mark.parametrize(("from_hz", "to_hz"), [(a, b) for a, b in PAIRS if a > b])
def test_what_the_lower_rate_cannot_hold_does_not_fold_over(from_hz: int, to_hz: int) -> None:
    place = np.arange(from_hz)
    too_high_hz = 0.5 * to_hz * 1.1
    wave = np.rint(16000 * np.sin(2 * np.pi * too_high_hz * place / from_hz)).astype("<i2")
    resampler = StreamResampler(from_hz, to_hz)
    out = np.frombuffer(resampler.process(wave.tobytes()), "<i2")[100:]
    assert np.abs(out.astype(int)).max() <= 16000 * 10 ** (-60 / 20)


@pytest.mark.parametrize(("from_hz", "to_hz"), UNEQUAL_PAIRS)
def test_speech_band_noise_comes_out_as_a_filter_of_another_make_has_it(
    from_hz: int, to_hz: int
) -> None:
    low = min(from_hz, to_hz)
    noise = np.random.default_rng(5).normal(0, 4000, low).astype(np.float32)
    source = soxr.resample(noise, low, from_hz, quality="VHQ") if from_hz != low else noise
    # Only what both filters pass in full can be compared: below 0.8 of the lower Nyquist rate.
    spectrum = np.fft.rfft(source)
    spectrum[int(0.8 * low / 2 * len(source) / from_hz) :] = 0
    limited = np.rint(np.fft.irfft(spectrum, len(source))).astype("<i2")
    judged = soxr.resample(limited.astype(np.float32), from_hz, to_hz, quality="VHQ")
    resampler = StreamResampler(from_hz, to_hz)
    ours = np.frombuffer(resampler.process(limited.tobytes()) + resampler.flush(), "<i2")
    inner = slice(to_hz // 20, -to_hz // 20)
    error = np.sqrt(np.mean((ours[inner] - judged[inner]) ** 2))
    assert error < 0.002 * np.sqrt(np.mean(judged[inner] ** 2)) + 1


def test_equal_rates_pass_the_bytes_through() -> None:
    message = bytes(range(100))
    assert StreamResampler(24000, 24000).process(message) is message


@pytest.mark.parametrize("level", [-32768, -1000, 0, 1, 12345, 32767])
@pytest.mark.parametrize(("from_hz", "to_hz"), UNEQUAL_PAIRS)
def test_a_steady_level_stays_exactly_that_level(from_hz: int, to_hz: int, level: int) -> None:
    steady = np.full(from_hz // 10, level, "<i2").tobytes()
    out = np.frombuffer(StreamResampler(from_hz, to_hz).process(steady), "<i2")
    assert set(out[to_hz // 100 :].tolist()) == {level}


def test_overshoot_at_full_scale_is_clipped_and_not_wrapped_around() -> None:
    quiet = np.repeat(np.array([16000, -16000] * 200, "<i2"), 12)
    unclipped = np.frombuffer(StreamResampler(24000, 48000).process(quiet.tobytes()), "<i2")
    loud = np.frombuffer(StreamResampler(24000, 48000).process((2 * quiet).tobytes()), "<i2")
    assert loud.max() == 32767
    assert loud.min() == -32768
    expected = np.clip(2 * unclipped.astype(int), -32768, 32767)
    assert np.abs(loud - expected).max() <= 1


def test_after_a_flush_the_next_stream_starts_like_the_first() -> None:
    resampler = StreamResampler(24000, 16000)
    message = tone(24000, 0.0371) + b"\x01"
    first = resampler.process(message) + resampler.flush()
    assert resampler.process(message) + resampler.flush() == first


def test_dropping_half_a_sample_keeps_the_rest_in_step() -> None:
    resampler = StreamResampler(16000, 16000)
    assert resampler.process(b"\x01\x02\x03") == b"\x01\x02"
    assert resampler.drop_half_sample() == 1
    assert resampler.drop_half_sample() == 0
    assert resampler.process(b"\x04\x05") == b"\x04\x05"


def test_rates_of_the_compact_disc_family_work_too() -> None:
    resampler = StreamResampler(22050, 24000)
    out = resampler.process(tone(22050)) + resampler.flush()
    assert len(out) == 48000
    assert loudest_hz(out, 24000) == pytest.approx(1000, abs=0.5)
