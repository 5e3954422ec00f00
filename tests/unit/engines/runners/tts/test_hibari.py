"""The runner around a voice that a test can predict; the real one is in test_hibari_voice."""

from __future__ import annotations

import re
from array import array

import numpy as np
import pytest

from duologue.engines.payloads import (
    AudioChunk,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
)
from duologue.engines.runners.contract import Job
from duologue.engines.runners.tts.hibari import HibariRunner, HibariSettings
from duologue.engines.runners.tts.hibari_voice import RATE_HZ, Utterance

WORD = 2400
"""Samples that the fake voice takes for a word at normal speed: 100 ms."""


class FakeVoice:
    """Says each word as 100 ms of a constant."""

    def __init__(self, level: float = 0.5) -> None:
        self.level = level
        self.said: list[tuple[str, float, int]] = []

    def speak(self, text: str, speed: float, pause_samples: int) -> Utterance:
        self.said.append((text, speed, pause_samples))
        words = [match.end() for match in re.finditer(r"\S+", text)]
        length = round(WORD / speed)
        ends = tuple((end, (n + 1) * length) for n, end in enumerate(words))
        return Utterance(np.full(len(words) * length, self.level, np.float32), ends)


def play(*clauses: Payload, voice: FakeVoice | None = None, **settings: object) -> list[Payload]:
    runner = HibariRunner(voice or FakeVoice(), HibariSettings(**settings))
    job = Job(id="a", input_ended=True)
    job.inputs.extend(clauses)
    runner.open(job)
    outputs: list[Payload] = []
    while True:
        assert runner.ready(job)
        (step,) = runner.step([job])
        assert step.error is None
        outputs += step.outputs
        if step.done:
            break
    assert not runner.ready(job)
    runner.close(job)
    return outputs


def chunks(outputs: list[Payload]) -> list[AudioChunk]:
    return [output for output in outputs if isinstance(output, AudioChunk)]


def marks(outputs: list[Payload]) -> list[SpeechMark]:
    return [output for output in outputs if isinstance(output, SpeechMark)]


def samples(outputs: list[Payload]) -> array[int]:
    return array("h", b"".join(chunk.pcm for chunk in chunks(outputs)))


def test_audio_is_continuous_over_all_clauses() -> None:
    outputs = play(SpeakText("One two three.", 14), SpeakText(" Four five.", 25))
    position = 0
    for chunk in chunks(outputs):
        assert chunk.rate_hz == RATE_HZ
        assert chunk.start_sample == position
        position += len(chunk.pcm) // 2
    assert position == len(samples(outputs))


def test_the_end_of_each_clause_is_marked_where_its_sound_ends() -> None:
    outputs = play(SpeakText("One two.", 8), SpeakText(" Three", 14), sentence_ms=250)
    pause = 250 * RATE_HZ // 1000
    assert marks(outputs) == [SpeechMark(8, 2 * WORD), SpeechMark(14, 2 * WORD + pause + WORD)]


def test_words_whose_place_is_known_are_marked_too_behind_their_sound() -> None:
    clause = SpeakText("it costs five dollars", 11, word_ends=((2, 2), (8, 8), (21, 11)))
    outputs = play(clause)
    assert marks(outputs) == [
        SpeechMark(2, WORD),
        SpeechMark(8, 2 * WORD),
        SpeechMark(11, 4 * WORD),
    ]
    heard = 0
    for output in outputs:
        if isinstance(output, AudioChunk):
            heard = output.start_sample + len(output.pcm) // 2
        else:
            assert isinstance(output, SpeechMark)
            assert output.sample <= heard


def test_the_first_piece_is_short_and_none_is_a_splinter() -> None:
    outputs = play(SpeakText("one two three four five six seven and", 9), SpeakText("nine", 13))
    lengths_ms = [len(chunk.pcm) // 2 * 1000 // RATE_HZ for chunk in chunks(outputs)]
    assert lengths_ms == [100, 200, 200, 200, 100, 100]


@pytest.mark.parametrize(
    ("text", "pause_ms"),
    [("One.", 280), ("One?", 280), ('"One!"', 280), ("One,", 130), ("One:", 130), ("One", 0)],
)
def test_the_silence_after_a_clause_depends_on_how_it_ends(text: str, pause_ms: int) -> None:
    sound = samples(play(SpeakText(text, 4), SpeakText("two", 8)))
    pause = pause_ms * RATE_HZ // 1000
    assert len(sound) == 2 * WORD + pause
    assert not any(sound[WORD : WORD + pause])
    assert all(sound[:WORD])
    assert all(sound[WORD + pause :])


def test_there_is_no_silence_before_the_first_word_nor_after_the_last() -> None:
    sound = samples(play(SpeakText("One.", 4)))
    assert len(sound) == WORD


def test_a_clause_that_says_nothing_is_marked_and_keeps_the_pause() -> None:
    outputs = play(SpeakText("One.", 4), SpeakText("", 6), SpeakText("two", 10))
    assert marks(outputs)[1] == SpeechMark(6, WORD)
    assert len(samples(outputs)) == 2 * WORD + 280 * RATE_HZ // 1000


def test_loud_peaks_are_clipped_not_wrapped() -> None:
    assert set(samples(play(SpeakText("One", 3), voice=FakeVoice(0.9)))) == {32767}
    assert set(samples(play(SpeakText("One", 3), voice=FakeVoice(-0.9)))) == {-32767}


def test_speed_is_held_to_what_the_voice_can_do_and_pauses_go_with_it() -> None:
    voice = FakeVoice()
    outputs = play(SpeakText("One.", 4, speed=9), SpeakText("two", 8, speed=2), voice=voice)
    assert [speed for _, speed, _ in voice.said] == [2, 2]
    assert len(samples(outputs)) == WORD + 140 * RATE_HZ // 1000


def test_one_piece_is_given_per_step_so_that_a_cancel_comes_in_between() -> None:
    voice = FakeVoice()
    runner = HibariRunner(voice, HibariSettings())
    job = Job(id="a")
    job.inputs.extend([SpeakText("one two three four five six", 9), SpeakText("seven", 15)])
    runner.open(job)
    for _ in range(3):
        (step,) = runner.step([job])
        assert len(chunks(list(step.outputs))) == 1
        assert not step.done
    assert len(voice.said) == 1
    runner.close(job)


def test_a_stream_that_may_go_on_is_not_done() -> None:
    runner = HibariRunner(FakeVoice(), HibariSettings())
    job = Job(id="a")
    runner.open(job)
    assert not runner.ready(job)
    job.inputs.append(SpeakText("one", 3))
    (step,) = runner.step([job])
    assert not step.done
    assert not runner.ready(job)


def test_something_else_than_a_clause_is_refused() -> None:
    runner = HibariRunner(FakeVoice(), HibariSettings())
    job = Job(id="a")
    runner.open(job)
    job.inputs.append(TextDelta("x"))
    (step,) = runner.step([job])
    assert step.error is not None
    assert "TextDelta" in step.error.message


def test_warming_up_says_a_word_that_no_dictionary_holds() -> None:
    voice = FakeVoice()
    HibariRunner(voice, HibariSettings()).warm_up()
    assert len(voice.said) == 1
