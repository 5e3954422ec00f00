from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.runners.asr.repetition import first_turn


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("Press 2 to go on. Press 2 to go on.", "Press 2 to go on."),
        ("Please hold. please hold, Please", "Please hold."),
        ("No, no, no!", "No,"),
        ("Five five.", "Five"),
        ("I don't know. I don\u2019t know. I don't know.", None),
        ("I don't know. I don't know. I don't", "I don't know."),
    ],
)
def test_what_is_repeated_is_found(text: str, once: str | None) -> None:
    assert first_turn(text) == once


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "Hello.",
        "Press one to go on, press two to go on.",
        "one two three one",
        "one two three four one two",
        "To be or not to be.",
    ],
)
def test_speech_that_only_comes_back_to_a_word_is_none(text: str) -> None:
    assert first_turn(text) is None


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(2, 4))
def test_any_repetition_is_found(words: list[str], times: int) -> None:
    once = first_turn(" ".join(words * times))
    assert once is not None
    assert (" ".join(words) + " ").startswith(once + " ")
