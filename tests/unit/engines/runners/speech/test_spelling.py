from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.runners.speech.spelling import NOTHING_SPELT, Spelling
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer

TOKENIZER = byte_tokenizer(("<end>",))


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.encode(text).ids
    return ids


def spelt(text: str, *stop: str) -> tuple[list[str], Spelling]:
    spelling = Spelling(TOKENIZER, stop)
    pieces = []
    for token in ids_of(text):
        pieces.append(spelling.add(token).text)
        if spelling.ended:
            break
    return [*pieces, spelling.finish().text], spelling


def test_a_character_comes_when_it_is_whole() -> None:
    pieces, spelling = spelt("h\u00e9\u20ac")
    assert pieces == ["h", "", "\u00e9", "", "", "\u20ac", ""]
    assert spelling.chars == 3


def test_a_part_of_a_character_at_the_end_is_not_lost() -> None:
    spelling = Spelling(TOKENIZER)
    part = ids_of("\u20ac")[:2]
    assert [spelling.add(token) for token in part] == [NOTHING_SPELT] * 2
    assert spelling.finish().ids == tuple(part)


def test_the_answer_ends_before_a_text_that_stops_it() -> None:
    pieces, spelling = spelt("one two three", " two", "xyz")
    assert "".join(pieces) == "one"
    assert spelling.ended
    assert spelling.chars == 3
    pieces, spelling = spelt("one ten", " two")
    assert pieces[3:6] == ["", "", " te"], "it is held back while it may be the beginning"
    assert "".join(pieces) == "one ten"


def test_tokens_stay_with_their_text() -> None:
    spelling = Spelling(TOKENIZER, (" two",))
    given = [spelling.add(token) for token in ids_of("one two")]
    assert [each for piece in given for each in piece.ids] == ids_of("one")


@given(text=st.text(max_size=30), stop=st.text(min_size=1, max_size=3))
def test_all_is_given_once_and_nothing_of_a_stop(text: str, stop: str) -> None:
    pieces, spelling = spelt(text, stop)
    whole = text.partition(stop)[0]
    assert "".join(pieces) == whole
    assert spelling.chars == len(whole)
    assert spelling.ended is (stop in text)


@pytest.mark.parametrize("stop", [(), ("",)])
def test_nothing_may_stop_it(stop: tuple[str, ...]) -> None:
    assert "".join(spelt("a b", *stop)[0]) == "a b"
