from __future__ import annotations

import pytest
import soundfile
from scoring import QUESTIONS, Question, load_questions

TOTAL_BYTES = 1_500_000


def test_there_are_twenty_questions_with_different_names() -> None:
    assert len({question.id for question in load_questions()}) == 20


def test_every_question_has_audio_and_no_audio_is_left_over() -> None:
    named = {question.audio_path.name for question in load_questions()}
    assert {path.name for path in QUESTIONS.glob("*.flac")} == named


def test_the_audio_is_small() -> None:
    assert sum(path.stat().st_size for path in QUESTIONS.glob("*.flac")) < TOTAL_BYTES


@pytest.mark.parametrize("question", load_questions(), ids=lambda question: question.id)
def test_a_question_is_short_mono_speech_with_checks(question: Question) -> None:
    info = soundfile.info(question.audio_path)
    assert (info.channels, info.samplerate, info.subtype) == (1, 24_000, "PCM_16")
    assert 0.5 < info.duration < 4.0
    assert question.topic
    assert all(question.keywords)
