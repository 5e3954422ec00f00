from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk
from duologue.engines.runners.asr.utterance import SegmentPosition, Utterance
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ

Samples = NDArray[np.int16]


def speech(seconds: float, level: float = 8000.0) -> Samples:
    return np.random.default_rng(4).normal(0, level, int(seconds * SPEECH_RATE_HZ)).astype("<i2")


def hush(seconds: float, level: float = 20.0) -> Samples:
    return speech(seconds, level)


def utterance(*parts: Samples, segment_s: float = 4.0) -> Utterance:
    made = Utterance(int(segment_s * SPEECH_RATE_HZ))
    made.append(AudioChunk(np.concatenate(parts).tobytes(), SPEECH_RATE_HZ, 1000))
    return made


def seconds(position: SegmentPosition) -> float:
    return position.sample / SPEECH_RATE_HZ


def test_a_place_is_on_the_clock_of_the_chunks_and_within_the_audio() -> None:
    said = utterance(speech(1))
    assert said.position(1000 + 800) == SegmentPosition(0, 800)
    assert said.position(99_000) == SegmentPosition(0, 16_000)
    assert said.position(0) == SegmentPosition(0, 0)


def test_frames_reach_up_to_the_place() -> None:
    said = utterance(speech(1))
    assert len(said.frames(said.position(1000 + 1600))) == 12
    assert len(said.frames(said.position(1000))) == 0


def test_a_segment_is_cut_in_the_middle_of_the_longest_hush() -> None:
    said = utterance(speech(1), hush(0.3), speech(1.5), hush(0.3), speech(2))
    assert said.must_be_cut
    # The first hush is in the first half of the segment, where no cut is made.
    assert seconds(said.cut_position()) == pytest.approx(2.95, abs=0.06)


def test_speech_without_a_hush_is_cut_where_it_is_softest() -> None:
    said = utterance(speech(3), speech(0.2, level=3000), speech(2))
    assert seconds(said.cut_position()) == pytest.approx(3.1, abs=0.02)


def test_digital_silence_is_cut_as_late_as_possible() -> None:
    said = utterance(np.zeros(5 * SPEECH_RATE_HZ, "<i2"))
    assert seconds(said.cut_position()) == pytest.approx(3.9)


def test_closing_a_segment_keeps_its_text_and_the_audio_after_it() -> None:
    said = utterance(speech(3), hush(0.4), speech(1.6))
    end = 1000 + 5 * SPEECH_RATE_HZ
    whole = said.frames(said.position(end))
    cut = said.cut_position()
    said.close_segment(cut, "one two")
    assert not said.must_be_cut
    assert said.position(end) == SegmentPosition(1, 5 * SPEECH_RATE_HZ - cut.sample)
    assert said.position(1000) == SegmentPosition(1, 0)
    rest = said.frames(said.position(end))
    assert np.abs(rest - whole[cut.sample // 160 :]).max() < 1e-5
    assert said.text_with("three") == "one two three"
    assert said.text_with("") == "one two"


def test_the_open_segment_may_be_decoded_up_to_its_limit() -> None:
    said = utterance(speech(5))
    assert said.fits(said.position(1000 + 4 * SPEECH_RATE_HZ))
    assert not said.fits(said.position(1000 + 4 * SPEECH_RATE_HZ + 1))


def test_the_tail_of_converted_audio_comes_with_the_end() -> None:
    said = Utterance(SPEECH_RATE_HZ)
    said.append(AudioChunk(bytes(2 * 2400), 24_000))
    said.finish()
    assert said.position(2400) == SegmentPosition(0, 1600)


@pytest.mark.parametrize(
    ("added", "silent"),
    [
        (hush(0.4), True),
        (np.zeros(6400, "<i2"), True),
        (speech(0.4), False),
        (speech(0.4, level=1000), False),
        (np.concatenate((hush(0.3), speech(0.01), hush(0.1))), False),
        (hush(0.005), True),
    ],
)
def test_silence_is_what_is_far_softer_than_the_speech_before(added: Samples, silent: bool) -> None:
    said = utterance(speech(1), added)
    start = said.position(1000 + SPEECH_RATE_HZ)
    end = said.position(1000 + 99_000)
    assert said.only_silence_between(start, end) is silent
    assert said.only_silence_between(end, end)
    assert not said.only_silence_between(end, start)


def test_before_anything_was_said_nothing_is_known_to_be_silence() -> None:
    said = utterance(hush(1))
    assert not said.only_silence_between(said.position(1000), said.position(9000))


def test_places_in_different_segments_are_not_compared() -> None:
    said = utterance(speech(5))
    assert not said.only_silence_between(SegmentPosition(0, 100), SegmentPosition(1, 100))


def test_audio_that_does_not_continue_is_refused() -> None:
    said = utterance(speech(1))
    with pytest.raises(EngineError, match="90000"):
        said.append(AudioChunk(bytes(2), SPEECH_RATE_HZ, 90_000))
