"""What was heard of the assistant's speech."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.payloads import SpeechMark
from duologue.sessions.history.entry import Spoken

RATE_HZ = 1000
"""One sample is a millisecond."""

TEXT = "one two three four five six"


def spoken(
    text: str = TEXT,
    samples: int = 6000,
    marks: tuple[SpeechMark, ...] = (),
    *,
    complete: bool = True,
) -> Spoken:
    return Spoken("r", RATE_HZ, text, list(marks), samples, complete)


def test_an_answer_that_was_not_cut_was_heard_to_its_end() -> None:
    assert spoken().heard_text() == TEXT


def test_an_answer_that_was_cut_ends_with_the_last_whole_word() -> None:
    answer = spoken()
    answer.cut_sample = 2300
    assert answer.heard_text() == "one two"


def test_at_a_mark_the_text_is_exact() -> None:
    answer = spoken(marks=(SpeechMark(7, 1000), SpeechMark(13, 5000)))
    assert answer.text_until(1000) == "one two"
    assert answer.text_until(5000) == "one two three"
    assert answer.text_until(6000) == TEXT


def test_between_marks_words_are_interpolated() -> None:
    answer = spoken(marks=(SpeechMark(7, 1000), SpeechMark(len(TEXT), 3000)))
    assert answer.text_until(500) == "one"
    assert answer.text_until(1999) == "one two three"
    assert answer.text_until(2999) == "one two three four five"


def test_before_the_first_word_nothing_was_heard() -> None:
    assert spoken().text_until(0) == ""
    assert spoken(marks=(SpeechMark(7, 1000),)).text_until(10) == ""


def test_words_without_audio_so_far_were_not_heard() -> None:
    answer = spoken(samples=1000, marks=(SpeechMark(7, 1000),), complete=False)
    assert answer.text_until(1000) == "one two"
    answer.complete = True
    assert answer.text_until(1000) == TEXT


def test_without_marks_nobody_is_taken_to_speak_faster_than_people_do() -> None:
    answer = spoken(samples=200, complete=False)
    assert answer.text_until(200) == "one"
    assert answer.text_until(100) == ""


def test_a_word_that_is_cut_is_not_heard_even_at_the_border_of_marks() -> None:
    answer = spoken("Hello there. Fine", marks=(SpeechMark(12, 1000),), samples=2000)
    assert answer.text_until(1400) == "Hello there."


def test_an_answer_without_audio_was_not_heard() -> None:
    assert spoken(samples=0, complete=False).text_until(0) == ""


@st.composite
def answers(draw: st.DrawFn) -> Spoken:
    words = draw(st.lists(st.text("abcé,", min_size=1, max_size=8), max_size=12))
    text = " ".join(words)
    places = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9000)), max_size=8))
    ends = sorted(end for end, _ in places)
    samples = sorted(sample for _, sample in places)
    marks = tuple(SpeechMark(end, at) for end, at in zip(ends, samples, strict=True))
    return spoken(text, draw(st.integers(0, 9000)), marks, complete=draw(st.booleans()))


@given(answer=answers(), cut=st.one_of(st.none(), st.integers(0, 9000)))
def test_what_was_heard_is_always_a_beginning_of_the_text_in_whole_words(
    answer: Spoken, cut: int | None
) -> None:
    answer.cut_sample = cut
    heard = answer.heard_text()
    assert answer.text.startswith(heard)
    at_a_mark = any(
        answer.text[: mark.text_end].rstrip() == heard.rstrip() for mark in answer.marks
    )
    rest = answer.text[len(heard) :]
    assert at_a_mark or not heard or not rest or rest[0] == " "


@given(answer=answers(), places=st.tuples(st.integers(0, 9000), st.integers(0, 9000)))
def test_more_audio_never_means_less_text(answer: Spoken, places: tuple[int, int]) -> None:
    earlier, later = sorted(places)
    assert len(answer.text_until(earlier)) <= len(answer.text_until(later))
