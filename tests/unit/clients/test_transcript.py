from __future__ import annotations

from duologue.clients.transcript import Line, LineState, Side, Transcript


def only(transcript: Transcript) -> Line:
    (line,) = transcript
    return line


def test_a_callers_words_are_heard_as_they_come() -> None:
    transcript = Transcript()
    transcript.open("a", Side.CALLER)
    transcript.add("a", "What is ")
    transcript.add("a", "that?")
    assert only(transcript).heard_text == "What is that?"
    transcript.set_text("a", "What is this?")
    transcript.end("a", LineState.DONE)
    assert str(transcript) == "caller: What is this?"


def test_an_answer_is_heard_as_it_is_played() -> None:
    transcript = Transcript()
    transcript.open("a", Side.ASSISTANT)
    transcript.add("a", "That is a cat.")
    assert only(transcript).unheard_text == "That is a cat."
    transcript.set_heard("a", 7)
    assert (only(transcript).heard_text, only(transcript).unheard_text) == ("That is", " a cat.")
    transcript.end("a", LineState.DONE)
    assert only(transcript).unheard_text == ""


def test_a_line_that_was_cut_stays_cut_and_shows_where() -> None:
    transcript = Transcript()
    transcript.open("a", Side.ASSISTANT)
    transcript.add("a", "That is a cat.")
    transcript.set_heard("a", 7)
    transcript.end("a", LineState.CUT)
    transcript.end("a", LineState.DONE)
    assert str(transcript) == "assistant: That is[a cat.]"


def test_the_servers_word_on_what_was_heard_is_final() -> None:
    transcript = Transcript()
    transcript.open("a", Side.ASSISTANT)
    transcript.add("a", "That is a cat.")
    transcript.end("a", LineState.CUT)
    transcript.confirm_heard("a", "That is a")
    transcript.set_heard("a", 2)
    assert only(transcript).heard_text == "That is a"
    assert only(transcript).exact


def test_a_text_that_is_no_part_of_the_line_confirms_nothing() -> None:
    transcript = Transcript()
    transcript.open("a", Side.ASSISTANT)
    transcript.add("a", "That is a cat.")
    transcript.confirm_heard("a", "This")
    assert not only(transcript).exact


def test_what_is_not_there_is_ignored() -> None:
    transcript = Transcript()
    transcript.add("a", "x")
    transcript.set_text("a", "x")
    transcript.set_heard("a", 1)
    transcript.confirm_heard("a", "")
    transcript.end("a", LineState.DONE)
    transcript.remove("a")
    assert len(transcript) == 0
    assert transcript.version == 0


def test_only_the_latest_lines_are_kept() -> None:
    transcript = Transcript(max_lines=3)
    for name in "abcde":
        transcript.open(name, Side.CALLER)
    assert [line.item_id for line in transcript] == ["c", "d", "e"]


def test_a_view_can_tell_that_something_changed() -> None:
    transcript = Transcript()
    transcript.open("a", Side.ASSISTANT)
    before = transcript.version
    transcript.set_heard("a", 0)
    assert transcript.version == before
    transcript.add("a", "x")
    assert transcript.version > before
    transcript.remove("a")
    assert transcript.get("a") is None
