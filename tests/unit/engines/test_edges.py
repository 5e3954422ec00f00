from __future__ import annotations

from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.edges import EDGES, Ahead, forward, said_aloud, sounded_ahead, text_only
from duologue.engines.payloads import AudioChunk, CodeFrames, TextDelta, TokenUsage


def test_forward_hands_on_everything() -> None:
    usage = TokenUsage(1, 2)
    assert list(forward(usage)) == [usage]


def test_text_only_keeps_what_can_be_spoken_and_what_is_no_text() -> None:
    chunk = AudioChunk(b"", 24_000)
    assert list(text_only(TextDelta("word"))) == [TextDelta("word")]
    assert list(text_only(chunk)) == [chunk]


def test_text_only_drops_white_space_and_counts() -> None:
    assert list(text_only(TextDelta(" \n"))) == []
    assert list(text_only(TokenUsage(1, 2))) == []


def test_speech_that_a_talker_has_sounded_goes_ahead_and_its_codes_do_not() -> None:
    chunk = AudioChunk(b"", 24_000)
    codes = CodeFrames(bytes(16), 8, heard=True)
    assert sounded_ahead(chunk) == Ahead(chunk)
    assert sounded_ahead(codes) == (codes,)


def test_words_of_an_answer_are_handed_on_and_its_text_goes_ahead() -> None:
    begin, words = BeginAnswer((1, 2), "ethan"), AnswerWords((3,), 2)
    assert said_aloud(begin) == (begin,)
    assert said_aloud(words) == (words,)
    assert said_aloud(TextDelta("Hi")) == Ahead(TextDelta("Hi"))
    assert said_aloud(TokenUsage(1, 2)) == Ahead(TokenUsage(1, 2))


def test_every_edge_is_named_after_its_function() -> None:
    assert {name: edge.__name__ for name, edge in EDGES.items()} == {name: name for name in EDGES}
