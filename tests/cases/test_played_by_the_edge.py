"""Calls in which the edge paces the sound and says what was played: WebRTC, phones."""

from __future__ import annotations

from duologue.protocol.commands import CancelResponse, ClearOutputAudio, CommitAudio, CreateResponse
from duologue.protocol.events import ErrorEvent, ItemTruncated
from duologue.protocol.response_events import OutputItemAdded
from tests.cases.talk import DETECTING, READS, Talk, speech

TEN_WORDS = "one two three four five six seven eight nine ten"
"""Said in ten seconds: word n is over after n seconds."""


def answering(pipelines: tuple[str, ...] = DETECTING) -> tuple[Talk, str]:
    """A call in the middle of an answer, and the answer's item."""
    talk = Talk(pipelines, READS, edge_plays=True)
    talk.send(speech(600), CommitAudio(), CreateResponse())
    talk.transcribe("count to ten")
    talk.answer(TEN_WORDS, 10_000)
    return talk, talk.client.of(OutputItemAdded)[-1].item.id


def heard_text(talk: Talk, item_id: str) -> str | None:
    return next(view.text for view in talk.machine.history.view() if view.id == item_id)


def test_an_interruption_cuts_where_the_edge_has_played_to_whatever_the_clock_says() -> None:
    talk, item_id = answering()
    talk.clock.advance(5.0)  # the edge stood still for two seconds of them
    talk.session.played(item_id, 3_040)
    talk.say(12)
    (cut,) = talk.client.of(ItemTruncated)
    assert (cut.item_id, cut.audio_end_ms) == (item_id, 3_040)
    assert heard_text(talk, item_id) == "one two three"


def test_clearing_the_output_stops_an_answer_that_is_being_made() -> None:
    talk, item_id = answering()
    talk.clock.advance(2.0)
    talk.session.played(item_id, 1_980)
    talk.send(ClearOutputAudio())
    assert talk.done() == [("cancelled", "client_cancelled")]
    assert heard_text(talk, item_id) == "one"
    assert talk.client.of(ErrorEvent) == []
    talk.finish()
    talk.close()


def test_clearing_the_output_cuts_an_answer_that_is_made_and_still_plays() -> None:
    talk = Talk(DETECTING, READS, edge_plays=True)
    talk.send(speech(600), CommitAudio(), CreateResponse())
    talk.transcribe("count to two")
    talk.answer("one two", 2_000)
    talk.finish()
    item_id = talk.client.of(OutputItemAdded)[-1].item.id
    assert talk.done() == [("completed", None)]
    talk.session.played(item_id, 1_020)
    talk.send(ClearOutputAudio())
    (cut,) = talk.client.of(ItemTruncated)
    assert (cut.item_id, cut.audio_end_ms) == (item_id, 1_020)
    assert heard_text(talk, item_id) == "one"
    talk.close()


def test_clearing_what_was_cancelled_already_or_never_played_is_no_mistake() -> None:
    """One stock client sends both, the cancel first."""
    talk, item_id = answering()
    talk.session.played(item_id, 500)
    talk.send(CancelResponse(), ClearOutputAudio(), ClearOutputAudio())
    assert talk.done() == [("cancelled", "client_cancelled")]
    assert talk.client.of(ErrorEvent) == []
    talk.finish()
    talk.close()


def test_more_than_was_sent_is_never_heard() -> None:
    talk, item_id = answering()
    talk.session.played(item_id, 60_000)
    talk.session.played("item_unknown", 10)
    talk.send(ClearOutputAudio())
    heard = heard_text(talk, item_id)
    assert heard is not None
    assert TEN_WORDS.startswith(heard)
    assert heard != TEN_WORDS
    talk.finish()
    talk.close()
