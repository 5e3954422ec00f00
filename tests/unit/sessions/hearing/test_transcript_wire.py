"""How transcripts of the person's speech are shown to the client."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import TranscriptKind
from duologue.protocol.events import (
    DurationUsage,
    Event,
    TranscriptionCompleted,
    TranscriptionDelta,
)
from duologue.sessions.hearing.transcript_wire import REMEMBERED_ITEMS, TranscriptWire, continued
from duologue.sessions.hearing.transcription import TranscriptReady

RATE_HZ = 16000


def partial(stable: str, text: str = "", item_id: str = "a") -> TranscriptReady:
    return TranscriptReady(item_id, text or stable, TranscriptKind.PARTIAL, stable, 8000)


def final(text: str, item_id: str = "a") -> TranscriptReady:
    return TranscriptReady(item_id, text, TranscriptKind.FINAL, "", 24000)


def deltas(events: list[Event]) -> list[str]:
    return [event.delta for event in events if isinstance(event, TranscriptionDelta)]


def show(wire: TranscriptWire, *transcripts: TranscriptReady) -> list[Event]:
    return [event for ready in transcripts for event in wire.events(ready)]


def test_deltas_together_are_the_transcript() -> None:
    events = show(
        TranscriptWire(RATE_HZ),
        partial("I need", "I need a tax"),
        partial("I need a", "I need a taxi"),
        final("I need a taxi"),
    )
    assert deltas(events) == ["I need", " a", " taxi"]
    assert events[-1] == TranscriptionCompleted(
        item_id="a", transcript="I need a taxi", usage=DurationUsage(seconds=1.5)
    )


def test_what_may_still_change_is_not_shown() -> None:
    assert show(TranscriptWire(RATE_HZ), partial("", "I kneed")) == []


@pytest.mark.parametrize("kind", [TranscriptKind.PARTIAL, TranscriptKind.SPECULATIVE])
def test_no_news_is_no_event(kind: TranscriptKind) -> None:
    wire = TranscriptWire(RATE_HZ)
    show(wire, partial("I need"))
    again = TranscriptReady("a", "I need a", kind, "I need", 8000)
    assert show(wire, again) == []


def test_what_was_told_stands_where_a_transcript_turns_out_different() -> None:
    events = show(TranscriptWire(RATE_HZ), partial("I need"), final("A knee hurts"))
    assert deltas(events) == ["I need", " hurts"]
    assert isinstance(events[-1], TranscriptionCompleted)
    assert events[-1].transcript == "I need hurts"


@pytest.mark.parametrize(
    ("sent", "text", "shown"),
    [
        ("", "a taxi", "a taxi"),
        ("a", "a taxi", "a taxi"),
        ("hello there", "Hello, there. Who is it?", "hello there Who is it?"),
        ("I need a tack", "I need a taxi to the zoo", "I need a tack to the zoo"),
        ("I kneed a", "I need a taxi", "I kneed a taxi"),
        ("I need a", "I a taxi", "I need a taxi"),
        ("one two three", "one two", "one two three"),
        ("one two", "", "one two"),
        ("w " * 40 + "end", "v " * 40 + "end here", "w " * 40 + "end here"),
    ],
)
def test_a_transcript_goes_on_where_what_was_sent_ends(sent: str, text: str, shown: str) -> None:
    assert continued(sent, text) == shown


def test_an_empty_transcript_is_completed_without_a_delta() -> None:
    (event,) = show(TranscriptWire(RATE_HZ), final(""))
    assert isinstance(event, TranscriptionCompleted)


def test_each_item_has_its_own_deltas() -> None:
    events = show(TranscriptWire(RATE_HZ), partial("one"), partial("two", item_id="b"))
    assert deltas(events) == ["one", "two"]


def test_a_failure_names_the_item_and_ends_its_deltas() -> None:
    wire = TranscriptWire(RATE_HZ)
    show(wire, partial("one"))
    failed = wire.failed("a", "stage_timeout")
    assert (failed.item_id, failed.error.code) == ("a", "stage_timeout")
    assert wire.failed("a", "a word of the runner's own").error.code == "stage_failed"
    assert deltas(show(wire, partial("one"))) == ["one"]


def test_abandoned_turns_are_forgotten_in_the_end() -> None:
    wire = TranscriptWire(RATE_HZ)
    show(wire, *(partial("x", item_id=str(number)) for number in range(REMEMBERED_ITEMS + 1)))
    assert deltas(show(wire, final("x", "1"))) == []
    assert deltas(show(wire, final("x", "0"))) == ["x"]
