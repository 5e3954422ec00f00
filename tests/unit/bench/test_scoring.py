from __future__ import annotations

import pytest
from scoring import Question, incoherence, is_correct, word_errors

QUESTION = Question("week", "How many days?", (("seven",), ("day*", "night")), ("week", "day*"))


def test_an_answer_is_correct_when_every_group_is_met() -> None:
    assert is_correct(QUESTION, "There are 7 days in a week.")
    assert not is_correct(QUESTION, "There are 8 days in a week.")
    assert not is_correct(QUESTION, "Seven.")


def test_a_word_counts_only_as_a_whole_unless_a_star_follows() -> None:
    assert not is_correct(QUESTION, "Seventeen days.")
    assert not is_correct(QUESTION, "Seven knights.")
    assert is_correct(QUESTION, "Seven daylight hours.")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Seven", "only 1 words"),
        ("A week has seven", "ends in the middle of a sentence"),
        ("**Seven** days in a week.", "markup: '**'"),
        ("- seven days a week.", "markup: '-'"),
        ("A week is a week is a week is a week is.", "repeats itself"),
        ("The moon is made of cheese.", "off the topic"),
    ],
)
def test_what_is_no_spoken_reply_is_named(answer: str, reason: str) -> None:
    assert incoherence(QUESTION, answer) == reason


def test_a_plain_reply_is_coherent() -> None:
    assert incoherence(QUESTION, 'A week - any week - has "seven days."') is None


def test_word_errors_are_counted_as_words_are_spoken() -> None:
    assert word_errors("There are 12 months.", "there are twelve moths") == (1, 4)
