from __future__ import annotations

import pytest

from duologue.commands.demo.questions import ORDER, load_questions, speech_span
from duologue.core.errors import ConfigError


def test_the_bundled_questions_are_there_with_audio_and_keywords() -> None:
    questions = load_questions(len(ORDER))
    assert [question.id for question in questions] == list(ORDER)
    for question in questions:
        assert question.text
        assert question.keywords
        assert 0 < question.speech_from_s < question.speech_until_s
        assert question.speech_until_s <= len(question.pcm) / 2 / 24_000


def test_a_question_knows_what_an_answer_lacks() -> None:
    (france,) = load_questions(1)
    assert france.missing("It is Paris, of course.") == []
    assert france.missing("It is London.") == ["paris"]


def test_there_are_only_so_many() -> None:
    with pytest.raises(ConfigError, match=f"there are {len(ORDER)}"):
        load_questions(len(ORDER) + 1)


def test_speech_reaches_from_the_first_loud_sample_to_the_last() -> None:
    loud = b"\x00\x10" * 2400
    assert speech_span(bytes(4800) + loud + bytes(4800)) == pytest.approx((0.1, 0.2))
    assert speech_span(bytes(4800)) == (0.0, 0.0)
    assert speech_span(b"") == (0.0, 0.0)
