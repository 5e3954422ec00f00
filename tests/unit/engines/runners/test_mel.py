from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.runners import mel

ROWS = (0, 5, 20, 40, 60, 79)

# What WhisperFeatureExtractor(chunk_length=8) of transformers 5.24 makes of `sweep`: frame -> rows.
PUBLISHED = {
    0: (0.42837, 0.5311, -0.64338, -0.16416, 0.27153, -0.28751),
    1: (-0.13785, 0.67323, -0.64338, -0.64338, -0.22914, -0.64338),
    50: (-0.64338, -0.64338, -0.32006, -0.64338, -0.5671, -0.64338),
    90: (-0.64338, -0.64338, -0.64338, 0.90291, -0.56599, -0.64338),
    199: (-0.64338, -0.64338, -0.64338, -0.64338, 0.20263, -0.64338),
    200: (-0.32626, -0.32523, -0.31321, -0.24893, 0.11502, -0.40993),
    201: (-0.64338, -0.64338, -0.64338, -0.64338, -0.39507, -0.64338),
    202: (-0.64338, -0.64338, -0.64338, -0.64338, -0.64338, -0.64338),
    799: (-0.64338, -0.64338, -0.64338, -0.64338, -0.64338, -0.64338),
}


def sweep() -> mel.Floats:
    t = np.arange(2 * mel.RATE_HZ) / mel.RATE_HZ
    rising = 0.4 * np.sin(2 * np.pi * (200 * t + 900 * t * t)) * np.exp(-(((t - 0.9) / 0.5) ** 2))
    return (rising + 0.02 * np.sin(2 * np.pi * 3456 * t)).astype(np.float32)


def noise(samples: int) -> mel.Floats:
    return np.random.default_rng(1).normal(0, 0.1, samples).astype(np.float32)


def streamed(samples: mel.Floats, *cuts: int) -> mel.LogMelStream:
    stream = mel.LogMelStream()
    for part in np.split(samples, cuts):
        stream.append(part)
    return stream


def assert_published(features: mel.Floats) -> None:
    assert features.shape == (1, mel.BANDS, 800)
    assert features.dtype == np.float32
    for frame, values in PUBLISHED.items():
        assert features[0, ROWS, frame] == pytest.approx(values, abs=2e-5), frame


def test_features_are_those_of_the_published_extractor() -> None:
    padded = np.pad(sweep(), (0, 6 * mel.RATE_HZ))
    assert_published(mel.as_features(mel.log_mel(padded), 800))


def test_a_stream_gives_the_features_of_the_published_extractor() -> None:
    stream = streamed(sweep(), 100, 640, 12345)
    assert_published(mel.as_features(stream.frames(len(stream)), 800))


@given(st.lists(st.integers(0, 3000), max_size=12), st.integers(1, 3000))
def test_any_cutting_gives_the_same_frames(cuts: list[int], length: int) -> None:
    samples = noise(length)
    whole = streamed(samples).frames(length)
    cut = streamed(samples, *sorted(cuts)).frames(length)
    assert np.abs(cut - whole).max() < 1e-5
    assert len(whole) == -(-(length + 200) // 160)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_later_audio_does_not_change_what_ended_earlier(end: int, more: int) -> None:
    samples = noise(end + more)
    got = streamed(samples, end // 2, end).frames(end)
    alone = streamed(samples[:end]).frames(end)
    assert got.shape == alone.shape
    assert np.abs(got - alone).max(initial=0.0) < 1e-5


def test_frames_past_the_end_hear_nothing() -> None:
    stream = streamed(noise(1000))
    assert np.array_equal(stream.frames(5000), stream.frames(1000))
    assert len(stream.frames(0)) == 0
    assert len(stream.frames(-5)) == 0


def test_dropping_keeps_what_follows() -> None:
    samples = noise(8000)
    stream = streamed(samples, 3000)
    before = stream.frames(8000)
    stream.drop_before(3333)
    assert len(stream) == 8000 - 3200
    assert np.array_equal(stream.samples, samples[3200:])
    assert np.abs(stream.frames(len(stream)) - before[20:]).max() < 1e-5
    stream.append(samples)
    assert np.abs(stream.frames(4800)[:28] - before[20:48]).max() < 1e-5


def test_dropping_more_than_there_is_leaves_what_has_no_frame_yet() -> None:
    stream = streamed(noise(1000))
    stream.drop_before(10_000)
    assert len(stream) == 200


def test_silence_has_features() -> None:
    nothing = mel.as_features(mel.LogMelStream().frames(0), 10)
    assert np.all(nothing == nothing[0, 0, 0])
    assert nothing.shape == (1, mel.BANDS, 10)
