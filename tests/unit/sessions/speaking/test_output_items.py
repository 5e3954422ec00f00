"""The items of a response's output."""

from __future__ import annotations

from duologue.engines.payloads import SpeechMark
from duologue.sessions.history.entry import Spoken
from duologue.sessions.speaking.output_items import OutputCall, OutputMessage


def message(text_start: int = 0, sample_start: int = 0, *, audio: bool = True) -> OutputMessage:
    return OutputMessage("a", 0, audio, Spoken("r", 1000), text_start, sample_start)


def test_marks_of_the_first_message_are_those_of_the_response() -> None:
    first = message()
    first.mark((SpeechMark(3, 100),))
    assert first.spoken.marks == [SpeechMark(3, 100)]


def test_marks_of_a_later_message_count_from_its_own_start() -> None:
    second = message(10, 1000)
    second.mark((SpeechMark(9, 900), SpeechMark(10, 1000), SpeechMark(14, 1400, exact=False)))
    assert second.spoken.marks == [SpeechMark(0, 0), SpeechMark(4, 400, exact=False)]


def test_a_written_message_was_read_as_far_as_it_was_delivered() -> None:
    written = message(audio=False)
    written.spoken.text, written.delivered_text = "one two", ["one"]
    assert written.heard_text() == "one"
    said = message()
    said.spoken.text, said.spoken.samples, said.spoken.cut_sample = "one two", 1000, 0
    assert said.heard_text() == ""


def test_what_is_complete_says_so() -> None:
    said, call = message(), OutputCall("b", 1, "k", "f", "c")
    said.complete()
    call.complete()
    assert said.spoken.complete
    assert call.whole
