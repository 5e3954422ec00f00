from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.commands.demo.words import likely_prefixes, mentions, spoken_words, word_errors

WORDS = st.lists(st.sampled_from("abcd"), max_size=8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("There are 7 days.", "there are seven days"),
        ("It\u2019s 1,234 to 21!", "it's one thousand two hundred thirty four to twenty one"),
        ("'Ok,' said Mr Color", "okay said mister colour"),
        ("100 40 0", "one hundred forty zero"),
        ("3000000", "three zero zero zero zero zero zero"),
        ("", ""),
    ],
)
def test_words_are_as_they_are_spoken(text: str, words: str) -> None:
    assert spoken_words(text) == words.split()


@pytest.mark.parametrize(
    ("wanted", "got", "errors"),
    [("a b c", "a b c", 0), ("a b c", "a x c", 1), ("a b c", "a c", 1), ("a", "a b c", 2)],
)
def test_substituted_missing_and_added_words_are_errors(wanted: str, got: str, errors: int) -> None:
    assert word_errors(wanted.split(), got.split()) == errors


@given(WORDS, WORDS)
def test_errors_are_a_distance(one: list[str], other: list[str]) -> None:
    assert word_errors(one, one) == 0
    assert word_errors(one, other) == word_errors(other, one)
    assert abs(len(one) - len(other)) <= word_errors(one, other) <= max(len(one), len(other))


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("It is Paris.", ["paris"], True),
        ("Parisian food", ["paris"], False),
        ("Parisian food", ["paris*"], True),
        ("at the South Pole", ["south pole"], True),
        ("7 days", ["seven"], True),
        ("nothing", [], False),
    ],
)
def test_keywords_are_whole_words_unless_they_say_otherwise(
    text: str, words: list[str], found: bool
) -> None:
    assert mentions(text, words) is found


@given(WORDS, st.integers(0, 8))
def test_a_prefix_that_was_heard_is_among_the_likely_ones(words: list[str], count: int) -> None:
    least, most = likely_prefixes(words, words[:count])
    assert least <= min(count, len(words)) <= most


def test_half_a_word_at_the_cut_leaves_two_likely_prefixes() -> None:
    whole = ["you", "could", "cook", "pasta", "with", "sauce"]
    assert likely_prefixes(whole, ["you", "could", "cook", "past"]) == (3, 4)
    assert likely_prefixes(whole, ["you", "could", "cook"]) == (3, 3)
