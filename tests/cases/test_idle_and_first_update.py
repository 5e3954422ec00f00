"""A person who says nothing, and a client that streams before it has said what it wants."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import ResponseRequested
from duologue.protocol.commands import CommitAudio, CreateResponse, UpdateSession
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    IdleTimeoutTriggered,
    ItemAdded,
    ItemDone,
    SessionUpdated,
    TranscriptionCompleted,
)
from duologue.protocol.items import InputAudio, MessageItem
from duologue.protocol.response_events import ResponseCreated
from duologue.protocol.session_config import SemanticVad
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from tests.cases.talk import DETECTING, READS, Talk, detection, listening, speech
from tests.fakes.plugin import STAGE

IDLE_MS = 6000


def patient(**patch: object) -> UpdateSession:
    return detection(type="server_vad", idle_timeout_ms=IDLE_MS, **patch)


def answered_call(**patch: object) -> Talk:
    """A call in which two seconds of an answer have just begun to play."""
    talk = Talk(DETECTING, READS)
    talk.send(patient(**patch))
    talk.turn()
    talk.transcribe("hello")
    talk.answer("Hello to you", 2000)
    talk.finish()
    return talk


def idle(talk: Talk) -> list[IdleTimeoutTriggered]:
    return talk.client.of(IdleTimeoutTriggered)


def test_silence_after_an_answer_is_a_turn_of_its_own_and_is_answered() -> None:
    talk = answered_call()
    talk.send(listening(transcription=TranscriptionPatch()))
    # Counted from when the answer has been played, not from when it was made.
    talk.clock.advance(2 + IDLE_MS / 1000 - 0.1)
    assert idle(talk) == []
    before = len(talk.client.events)
    talk.clock.advance(0.2)
    kinds = [type(event) for event in talk.client.events[before:]]
    assert kinds == [
        IdleTimeoutTriggered,
        AudioCommitted,
        ItemAdded,
        ItemDone,
        TranscriptionCompleted,
        ResponseCreated,
    ]
    (triggered,) = idle(talk)
    committed, added = talk.client.of(AudioCommitted)[-1], talk.client.of(ItemAdded)[-1]
    assert triggered.item_id == committed.item_id == added.item.id
    assert committed.previous_item_id == added.previous_item_id is not None
    assert isinstance(added.item, MessageItem)
    assert (added.item.role, added.item.content) == ("user", (InputAudio(),))
    assert triggered.audio_end_ms == talk.machine.listening.audio_ms()
    assert talk.client.last(TranscriptionCompleted).transcript == ""
    asked = talk.plugin.of(ResponseRequested)[-1].conversation[-1]
    assert (asked.id, asked.text, asked.silence) == (triggered.item_id, "", True)
    talk.answer("Are you still there?", 1000)
    talk.finish()
    talk.play_to_the_end()
    assert len(idle(talk)) == 2
    talk.finish()
    talk.close()


def test_the_time_that_is_reported_is_the_time_that_was_silent() -> None:
    talk = answered_call()
    talk.hush(300)
    (triggered,) = idle(talk)
    assert triggered.audio_end_ms - triggered.audio_start_ms == IDLE_MS
    talk.finish()
    talk.close()


@pytest.mark.parametrize(
    "how", ["speech", "commit", "answer", "off", "detection off", "nothing was said"]
)
def test_whoever_stirs_is_not_idle(how: str) -> None:
    talk = answered_call()
    talk.clock.advance(4)
    match how:
        case "speech":
            talk.say(15)
            talk.clock.advance(4.9)
        case "commit":
            talk.send(speech(600), CommitAudio())
            talk.clock.advance(30)
        case "answer":
            talk.send(CreateResponse())
            talk.clock.advance(20)
        case "off":
            talk.send(detection(idle_timeout_ms=None))
            talk.clock.advance(60)
        case "detection off":
            talk.send(listening(turn_detection=None))
            talk.clock.advance(60)
        case _:
            # Nothing was said before: there is no answer that silence could follow.
            talk.close()
            talk = Talk(DETECTING, READS)
            talk.send(patient())
            talk.clock.advance(60)
    assert idle(talk) == []
    talk.finish() if talk.engine.of(STAGE) else None
    talk.close()


def test_a_client_that_answers_itself_is_only_told() -> None:
    talk = answered_call()
    talk.send(patient(create_response=False))
    talk.clock.advance(60)
    assert len(idle(talk)) == 1
    assert len(talk.client.of(ResponseCreated)) == 1
    talk.send(CommitAudio(event_id="e1"))
    assert talk.client.of(ErrorEvent)[-1].error.code == "input_audio_buffer_commit_empty"
    talk.close()


# The first update

EARLY_TURN = 12
"""Windows of speech: with the silence after it, less than a second."""


def early_turn(talk: Talk) -> None:
    talk.say(EARLY_TURN)
    talk.hush(17)


def first_update(detection: TurnDetectionPatch | None) -> UpdateSession:
    audio = AudioPatch(input=AudioInputPatch(turn_detection=detection))
    return UpdateSession(session=SessionPatch(instructions="Be brief.", audio=audio))


def test_an_answer_to_a_turn_from_before_the_first_update_waits_for_it() -> None:
    talk = Talk(DETECTING, READS)
    early_turn(talk)
    assert len(talk.client.of(AudioCommitted)) == 1
    assert talk.client.of(ResponseCreated) == []
    talk.send(first_update(TurnDetectionPatch(type="server_vad")))
    kinds = [type(event) for event in talk.client.events]
    assert kinds.index(SessionUpdated) < kinds.index(ResponseCreated)
    assert talk.plugin.of(ResponseRequested)[-1].config.instructions == "Be brief."
    talk.finish()
    talk.close()


def test_it_waits_for_a_second_at_most() -> None:
    talk = Talk(DETECTING, READS)
    early_turn(talk)
    talk.clock.advance(1)
    assert len(talk.client.of(ResponseCreated)) == 1
    talk.finish()
    talk.close()


@pytest.mark.parametrize(
    "wanted", [None, TurnDetectionPatch(type="server_vad", create_response=False)]
)
def test_a_client_that_wants_no_such_answers_gets_none(wanted: TurnDetectionPatch | None) -> None:
    talk = Talk(DETECTING, READS)
    early_turn(talk)
    talk.send(first_update(wanted))
    talk.clock.advance(10)
    assert talk.client.of(ResponseCreated) == []
    talk.close()


def test_an_answer_that_the_client_asks_for_itself_waits_for_nothing() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(CreateResponse())
    assert len(talk.client.of(ResponseCreated)) == 1
    talk.finish()
    talk.close()


# Detection that a model or server can or cannot do


def test_a_server_with_an_end_of_turn_model_takes_what_stock_clients_ask_for() -> None:
    talk = Talk(("vad", "end_of_turn", "asr", STAGE), READS)
    talk.send(detection(type="semantic_vad", eagerness="medium"))
    shown = talk.client.last(SessionUpdated).session.audio.input.turn_detection
    assert shown == SemanticVad(eagerness="medium")
    talk.close()


@pytest.mark.parametrize(
    ("eagerness", "windows"), [("high", 22), ("medium", 38), ("auto", 38), ("low", 79)]
)
def test_with_a_model_that_knows_nothing_eagerness_is_the_length_of_a_silence(
    eagerness: str, windows: int
) -> None:
    talk = Talk(("vad", "end_of_turn", "asr", STAGE), READS)
    talk.send(detection(type="semantic_vad", eagerness=eagerness))
    talk.say(20)
    talk.hush(windows - 1)
    assert talk.client.of(AudioCommitted) == []
    talk.hush(1)
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()
