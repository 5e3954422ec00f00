from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from duologue.clients.transcript import Line, LineState, Side, Transcript
from duologue.commands.talk.transcript_view import TranscriptView, is_final, line_text


def conversation() -> Transcript:
    transcript = Transcript()
    transcript.open("q", Side.CALLER)
    transcript.set_text("q", "What is that?")
    transcript.open("a", Side.ASSISTANT)
    transcript.add("a", "That is a cat.")
    return transcript


def piped() -> tuple[Console, StringIO]:
    out = StringIO()
    return Console(file=out, width=80), out


def test_in_a_pipe_each_line_is_printed_once_when_it_is_final() -> None:
    console, out = piped()
    transcript = conversation()
    with TranscriptView(console) as view:
        view.show(transcript)
        assert out.getvalue() == ""
        transcript.end("q", LineState.DONE)
        view.show(transcript)
        view.show(transcript)
        assert out.getvalue().split() == ["you", "What", "is", "that?"]
        transcript.end("a", LineState.DONE)
        view.show(transcript)
        view.finish(transcript)
    assert out.getvalue().count("That is a cat.") == 1


def test_lines_stay_in_the_order_of_speaking() -> None:
    console, out = piped()
    transcript = conversation()
    transcript.end("a", LineState.DONE)
    with TranscriptView(console) as view:
        view.show(transcript)
        assert out.getvalue() == ""
        transcript.end("q", LineState.DONE)
        view.show(transcript)
    assert out.getvalue().index("What") < out.getvalue().index("cat")


def test_at_the_end_everything_is_printed() -> None:
    console, out = piped()
    with TranscriptView(console) as view:
        view.finish(conversation())
        view.note("hung up")
    assert "That is a cat." in out.getvalue()
    assert "hung up" in out.getvalue()


def test_in_a_pipe_what_was_cut_is_said_in_brackets() -> None:
    console, out = piped()
    transcript = conversation()
    transcript.set_heard("a", 7)
    transcript.end("a", LineState.CUT)
    transcript.confirm_heard("a", "That is")
    transcript.end("q", LineState.DONE)
    with TranscriptView(console) as view:
        view.show(transcript)
    assert "duologue  That is [not heard: a cat.]" in out.getvalue()


def test_on_a_terminal_what_changes_is_drawn_again_and_what_is_final_stays() -> None:
    out = StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")
    transcript = conversation()
    with TranscriptView(console) as view:
        view.show(transcript)
        transcript.end("q", LineState.DONE)
        transcript.set_heard("a", 7)
        view.show(transcript)
        transcript.end("a", LineState.DONE)
        view.show(transcript)
    assert "That is" in out.getvalue()
    assert out.getvalue().count("What is that?") >= 2


@pytest.mark.parametrize(
    ("line", "words", "style"),
    [
        (Line("a", Side.ASSISTANT, "Yes no", 3), " no", "not bold dim default"),
        (
            Line("a", Side.ASSISTANT, "Yes no", 3, LineState.CUT),
            " no",
            "not bold dim strike default",
        ),
        (Line("a", Side.ASSISTANT, "Yes no", 3), "Yes", "not bold default"),
        (Line("a", Side.ASSISTANT), "...", "not bold dim default"),
        (
            Line("a", Side.CALLER, state=LineState.FAILED),
            "(not understood)",
            "italic not bold red",
        ),
        (
            Line("a", Side.ASSISTANT, state=LineState.FAILED),
            "(the answer failed)",
            "italic not bold red",
        ),
    ],
)
def test_unheard_words_are_dim_and_cut_ones_struck_through(
    line: Line, words: str, style: str
) -> None:
    text = line_text(line)
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styles[words] == style


@pytest.mark.parametrize(
    ("line", "final"),
    [
        (Line("a", Side.ASSISTANT, "x"), False),
        (Line("a", Side.ASSISTANT, "x", 1, LineState.DONE), True),
        (Line("a", Side.ASSISTANT, "x", 0, LineState.CUT), False),
        (Line("a", Side.ASSISTANT, "x", 0, LineState.CUT, exact=True), True),
        (Line("a", Side.ASSISTANT, "", 0, LineState.CUT), True),
        (Line("a", Side.CALLER, "", 0, LineState.FAILED), True),
    ],
)
def test_a_line_is_final_once_the_server_has_confirmed_it(line: Line, final: bool) -> None:
    assert is_final(line) is final
