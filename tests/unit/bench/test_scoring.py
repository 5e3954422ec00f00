from __future__ import annotations

import pytest
from scoring import Question, incoherence, is_correct, normalise, spell, word_errors

QUESTION = Question("week", "How many days?", (("seven",), ("day*", "night")), ("week", "day*"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (42, "forty two"),
        (100, "one hundred"),
        (305, "three hundred five"),
        (1984, "one thousand nine hundred eighty four"),
        (20_000, "twenty thousand"),
        (1_000_000, "one zero zero zero zero zero zero"),
    ],
)
def test_numbers_are_spelt_as_they_are_spoken(number: int, words: str) -> None:
    assert spell(number) == words


def test_normalising_leaves_words_only() -> None:
    text = "It\u2019s 1,250 m, Mr. Color-Blind: 'OK'!"
    expected = "it's one thousand two hundred fifty m mister colour blind okay"
    assert normalise(text) == expected.split()


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


@pytest.mark.parametrize(
    ("reference", "heard", "errors"),
    [
        ("The capital is Paris.", "the capital is paris", 0),
        ("There are 12 months.", "there are twelve months", 0),
        ("one two three", "one too three", 1),
        ("one two three", "one three", 1),
        ("one three", "one two three", 1),
        ("one two three", "", 3),
    ],
)
def test_word_errors_are_counted_after_normalising(reference: str, heard: str, errors: int) -> None:
    assert word_errors(reference, heard) == (errors, len(normalise(reference)))
