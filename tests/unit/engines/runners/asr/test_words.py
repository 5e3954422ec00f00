from __future__ import annotations

import pytest

from duologue.engines.runners.asr.words import joined_words

PIECES = {1: " The", 2: " qu", 3: "ick", 4: ",", 5: " dog", 6: ".", 7: "-", 8: "like"}


def decode(tokens: list[int]) -> str:
    return "".join(PIECES[token] for token in tokens)


def words_of(*tokens: int) -> list[tuple[str, float, float]]:
    begins = [round(0.1 * place, 1) for place in range(len(tokens) + 1)]
    words = joined_words(tokens, decode, begins, [0.9] * len(tokens))
    assert [token for word in words for token in word.tokens] == list(tokens)
    return [(word.text, word.start_s, word.end_s) for word in words]


def test_a_word_begins_with_white_space() -> None:
    assert words_of(1, 2, 3, 5) == [(" The", 0.0, 0.1), (" quick", 0.1, 0.3), (" dog", 0.3, 0.4)]


def test_punctuation_belongs_to_its_word_and_not_to_its_time() -> None:
    assert words_of(1, 4, 5, 6) == [(" The,", 0.0, 0.1), (" dog.", 0.2, 0.3)]


def test_a_word_goes_on_after_a_hyphen() -> None:
    assert words_of(5, 7, 8) == [(" dog-like", 0.0, 0.3)]


def test_a_word_is_as_sure_as_its_least_sure_token() -> None:
    (word,) = joined_words([2, 3, 4], decode, [0.0, 0.1, 0.2, 0.3], [0.9, 0.5, 0.1])

    assert word.probability == pytest.approx(0.5)


def test_parts_of_a_character_stay_together() -> None:
    halves = {(1,): "\ufffd", (1, 2): " é", (3,): "t"}

    words = joined_words(
        [1, 2, 3], lambda tokens: halves[tuple(tokens)], [0.0, 0.1, 0.2, 0.3], [1.0] * 3
    )

    assert [word.text for word in words] == [" ét"]


def test_no_tokens_are_no_words() -> None:
    assert joined_words([], decode, [0.0], []) == []
