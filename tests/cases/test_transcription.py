"""Sessions that only listen, as the speech-to-text classes of stock frameworks open them."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import (
    BeginResponse,
    Capabilities,
    PluginInput,
    ResponseRequested,
)
from duologue.engines.payloads import Transcript
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import (
    ClearAudio,
    CommitAudio,
    CreateResponse,
    UpdateSession,
)
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    ItemAdded,
    ItemDone,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.protocol.session_config import Transcription, TranscriptionResource
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from tests.cases.talk import BY_HAND, DETECTING, READS, Talk, detection, listening, speech
from tests.fakes.plugin import STAGE

EMPTY = "input_audio_buffer_commit_empty"


def only_listen(detection: TurnDetectionPatch | None, **patch: object) -> UpdateSession:
    """What a framework sends as the first thing."""
    inp = AudioInputPatch(
        format=FormatPatch(type="audio/pcm", rate=24000),
        transcription=TranscriptionPatch(model="gpt-4o-transcribe", language="en"),
        turn_detection=detection,
        **patch,  # type: ignore[arg-type]
    )
    return UpdateSession(session=SessionPatch(type="transcription", audio=AudioPatch(input=inp)))


def partial(talk: Talk, text: str) -> None:
    """Let the recogniser say what it has understood so far."""
    for stream in talk.engine.of("asr"):
        end = talk.machine.listening.audio.next_sample
        talk.engine.output(stream.request.id, Transcript(text, "partial", end))


def kinds(talk: Talk) -> list[type]:
    return [type(event) for event in talk.client.events]


def deltas(talk: Talk) -> str:
    return "".join(event.delta for event in talk.client.of(TranscriptionDelta))


def test_a_detector_finds_the_turns_and_partials_come_while_the_person_speaks() -> None:
    """As livekit's speech-to-text: server_vad, 50 ms pieces, speech events, deltas, completed."""
    talk = Talk(DETECTING, READS)
    talk.send(only_listen(TurnDetectionPatch(type="server_vad", silence_duration_ms=350)))
    shown = talk.client.last(SessionUpdated).session
    assert isinstance(shown, TranscriptionResource)
    assert shown.audio.input.transcription == Transcription(
        model="gpt-4o-transcribe", language="en"
    )
    talk.say(20)
    assert len(talk.client.of(SpeechStarted)) == 1
    for heard in ("where is", "where is the", "where is the station"):
        partial(talk, heard)
        talk.say(5)
    before_the_end = deltas(talk)
    assert before_the_end
    assert "where is the station".startswith(before_the_end)
    talk.hush(16)
    talk.transcribe("where is the station")
    (completed,) = talk.client.of(TranscriptionCompleted)
    assert completed.transcript == deltas(talk) == "where is the station"
    assert completed.usage.seconds == pytest.approx(35 * 0.032, abs=0.35)  # type: ignore[union-attr]
    order = [kind for kind in kinds(talk) if kind is not TranscriptionDelta]
    assert order[2:] == [
        SpeechStarted,
        SpeechStopped,
        AudioCommitted,
        ItemAdded,
        ItemDone,
        TranscriptionCompleted,
    ]
    assert talk.client.of(ErrorEvent) == []
    assert talk.engine.of(STAGE) == []
    assert talk.plugin.of(ResponseRequested) == []
    talk.close()


def test_a_client_with_a_detector_of_its_own_commits_by_hand() -> None:
    """As pipecat's speech-to-text: turn detection off, a commit where its own detector stops."""
    talk = Talk(DETECTING, READS)
    talk.send(only_listen(None))
    for word in ("one", "two"):
        talk.send(*[speech(20)] * 30, CommitAudio())
        talk.transcribe(word)
    assert [event.transcript for event in talk.client.of(TranscriptionCompleted)] == ["one", "two"]
    assert deltas(talk) == "onetwo"
    first, second = talk.client.of(AudioCommitted)
    assert (first.previous_item_id, second.previous_item_id) == (None, first.item_id)
    talk.send(speech(600), ClearAudio(), CommitAudio(event_id="e1"))
    assert talk.client.error().error.code == EMPTY
    talk.close()


def test_no_answer_comes_of_it_whatever_is_asked() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(only_listen(TurnDetectionPatch(type="server_vad")))
    talk.turn()
    talk.transcribe("answer me")
    talk.plugin.then(BeginResponse())
    talk.send(CreateResponse(event_id="e1"), UpdateSession(session=SessionPatch()))
    error = talk.client.error().error
    assert (error.code, error.event_id) == ("unsupported", "e1")
    talk.clock.advance(60)
    assert talk.client.of(ResponseCreated) == []
    talk.close()


def test_an_answer_that_goes_on_ends_when_the_session_becomes_one_that_listens() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(CreateResponse())
    talk.answer("one two", 2000)
    seen = len(talk.plugin.seen)
    talk.send(only_listen(None))
    assert talk.done() == [("cancelled", "client_cancelled")]
    assert all(stage.cancelled for stage in talk.engine.of(STAGE))
    talk.send(speech(600), CommitAudio())
    talk.transcribe("hello")
    told: list[PluginInput] = talk.plugin.seen[seen + 1 :]
    assert told == []
    assert talk.client.last(TranscriptionCompleted).transcript == "hello"
    talk.close()


def test_there_is_no_way_back_and_no_way_to_switch_transcription_off() -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(only_listen(None))
    talk.send(UpdateSession(event_id="e1", session=SessionPatch(type="realtime")))
    error = talk.client.error().error
    assert (error.code, error.param, error.event_id) == ("invalid_value", "session.type", "e1")
    talk.send(listening(transcription=None))
    assert talk.machine.config.transcription == Transcription(
        model="gpt-4o-transcribe", language="en"
    )
    talk.close()


@pytest.mark.parametrize(
    ("pipelines", "capabilities"),
    [(("vad", STAGE), READS), (DETECTING, Capabilities(decides_turns=True))],
)
def test_where_nothing_can_be_transcribed_it_is_refused_and_the_call_goes_on(
    pipelines: tuple[str, ...], capabilities: Capabilities
) -> None:
    talk = Talk(pipelines, capabilities)
    before = talk.machine.config
    talk.send(UpdateSession(session=SessionPatch(type="transcription")))
    assert talk.client.error().error.param == "session.type"
    assert talk.machine.config == before
    talk.send(CreateResponse())
    assert len(talk.client.of(ResponseCreated)) == 1
    talk.finish()
    talk.close()


def test_a_wish_for_transcripts_that_nobody_can_fulfil_is_answered_for_every_turn() -> None:
    """Stock clients ask for transcripts unasked: a refusal would end some of them."""
    talk = Talk(("vad", STAGE))
    talk.send(listening(transcription=TranscriptionPatch()))
    talk.turn()
    (failed,) = talk.client.of(TranscriptionFailed)
    assert failed.item_id == talk.client.last(AudioCommitted).item_id
    assert (failed.error.type, failed.error.code) == ("server_error", "no_recogniser")
    assert talk.client.of(ErrorEvent) == []
    # A model that hears for itself answers all the same.
    talk.answer("yes", 200)
    talk.finish()
    talk.play_to_the_end()
    assert talk.client.last(ResponseDone).response.status == "completed"
    talk.close()


def test_i7_deltas_together_are_the_transcript_also_where_the_recogniser_changes_its_mind() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(only_listen(TurnDetectionPatch(type="server_vad")))
    talk.say(20)
    for heard in (
        "I need a tack",
        "I need a tack see",
        "I need a tack see to",
        "I need a tack see",
    ):
        partial(talk, heard)
    assert deltas(talk)
    talk.hush(20)
    talk.transcribe("I need a taxi to the station.")
    completed = talk.client.last(TranscriptionCompleted)
    assert completed.transcript == deltas(talk)
    assert completed.transcript.endswith("the station.")
    talk.close()


def test_detection_may_change_while_it_listens() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(only_listen(None), detection(type="server_vad"))
    talk.turn()
    talk.transcribe("hello")
    assert len(talk.client.of(TranscriptionCompleted)) == 1
    assert talk.client.of(ResponseCreated) == []
    talk.close()
