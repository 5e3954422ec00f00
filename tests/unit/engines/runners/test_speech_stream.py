from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk
from duologue.engines.runners.speech_stream import AudioBreak, SpeechStream


def pcm(samples: int) -> bytes:
    return np.random.default_rng(2).integers(-9000, 9000, samples).astype("<i2").tobytes()


def test_audio_at_16_khz_passes_untouched() -> None:
    stream = SpeechStream()
    sound = pcm(1000)
    got = stream.append(AudioChunk(sound[:700], 16_000, 50)) + stream.append(
        AudioChunk(sound[700:], 16_000, 400)
    )
    assert got + stream.finish() == sound


@given(st.lists(st.integers(0, 2400), max_size=8), st.sampled_from([8000, 24_000, 44_100]))
def test_any_cutting_at_any_rate_gives_the_same_audio(cuts: list[int], rate_hz: int) -> None:
    sound = pcm(2400)
    places = [0, *sorted(cuts), 2400]
    stream = SpeechStream()
    got = b""
    for start, end in pairwise(places):
        got += stream.append(AudioChunk(sound[2 * start : 2 * end], rate_hz, start))
    got += stream.finish()
    whole = SpeechStream()
    assert got == whole.append(AudioChunk(sound, rate_hz)) + whole.finish()
    assert len(got) // 2 == round(2400 * 16_000 / rate_hz)


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 24_000, 44_100, 48_000])
def test_clocks_map_onto_each_other(rate_hz: int) -> None:
    stream = SpeechStream()
    stream.append(AudioChunk(b"", rate_hz, 700))
    assert stream.position(700 + rate_hz) == 16_000
    assert stream.clock_sample(16_000) == 700 + rate_hz
    for position in (0, 512, 5120):
        assert abs(stream.position(stream.clock_sample(position)) - position) <= 1


def test_a_short_gap_is_heard_as_silence() -> None:
    stream = SpeechStream()
    stream.append(AudioChunk(pcm(10), 16_000, 0))
    assert stream.append(AudioChunk(b"\x01\x00", 16_000, 14)) == bytes(8) + b"\x01\x00"


@pytest.mark.parametrize(
    ("chunk", "word"),
    [
        (AudioChunk(pcm(1), 16_000, 16_101), "16101"),
        (AudioChunk(pcm(1), 16_000, 99), "99"),
        (AudioChunk(pcm(1), 24_000, 100), "24000"),
    ],
)
def test_a_long_gap_an_overlap_and_another_rate_break_the_stream(
    chunk: AudioChunk, word: str
) -> None:
    stream = SpeechStream()
    stream.append(AudioChunk(pcm(100), 16_000, 0))
    with pytest.raises(AudioBreak, match=word):
        stream.append(chunk)
    assert stream.append(AudioChunk(pcm(1), 16_000, 100)) == pcm(1)


@pytest.mark.parametrize("rate_hz", [0, 7999, 96_025, 16_001])
def test_rates_that_cannot_be_converted_are_refused(rate_hz: int) -> None:
    with pytest.raises(EngineError, match=f"{rate_hz} Hz"):
        SpeechStream().append(AudioChunk(b"", rate_hz))


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(EngineError, match="3 bytes"):
        SpeechStream().append(AudioChunk(b"abc", 16_000))


def test_a_stream_without_audio_has_no_tail() -> None:
    assert SpeechStream().finish() == b""
