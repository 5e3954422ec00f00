from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import Capabilities, Listen
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.persona import Persona
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.frame_counts import FrameCounts
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.commands import ClearOutputAudio, CreateItem, CreateResponse, UpdateSession
from duologue.protocol.duplex.commands import (
    AcknowledgeEvents,
    BargeIn,
    CloseSession,
    CommitTurn,
    Heartbeat,
    ResumeSession,
    ShowFrame,
)
from duologue.protocol.duplex.events import (
    ContextShortened,
    FrameAcknowledged,
    FramesConsumed,
    OverlapDecided,
    ResponseListen,
    ResponseSpeak,
    SessionClosed,
    SessionExpired,
)
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    OutputBufferCleared,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import (
    ContentPartAdded,
    FormattedAudioDelta,
    ResponseCreated,
    ResponseDone,
)
from duologue.protocol.session_config import SemanticVad, ServerVad
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    TurnDetectionPatch,
)
from duologue.sessions.watching.look import look_at
from tests.fakes.call import FakeCall
from tests.fakes.pictures import picture
from tests.fakes.plugin import FakePlugin
from tests.unit.sessions.duplex_call import LOUD, answered, call, shown

# The session that is shown


def test_a_session_begins_as_its_client_described_it() -> None:
    made = call(instructions="Hi.")
    assert [type(event) for event in made.client.events] == [SessionCreated, SessionUpdated]
    assert made.client.last(SessionCreated).session == shown(made)
    assert shown(made).instructions == "Hi."
    assert shown(made).audio.input.format == PcmFormat(rate=16000)


def test_turns_are_left_to_the_server_unless_the_client_chooses() -> None:
    made = call()
    assert shown(made).turn_detection is None
    assert isinstance(shown(made).audio.input.turn_detection, SemanticVad)
    detection = TurnDetectionPatch(type="server_vad")
    audio = AudioPatch(input=AudioInputPatch(turn_detection=detection))
    made.send(UpdateSession(session=DuplexPatch(audio=audio)))
    assert isinstance(shown(made).turn_detection, ServerVad)
    audio = AudioPatch(input=AudioInputPatch(turn_detection=None))
    made.send(UpdateSession(session=DuplexPatch(audio=audio)))
    assert shown(made).turn_detection is None
    assert isinstance(shown(made).audio.input.turn_detection, SemanticVad)


def test_capabilities_say_who_decides_about_turns() -> None:
    able = shown(call()).capabilities
    assert able.implementation_level == "turn_based_duplex"
    assert able.turn_detection_types == ("semantic_vad", "server_vad")
    assert able.chunk_period_ms is None
    framed = Capabilities(decides_turns=True, frame_ms=80)
    assert shown(call(FakePlugin(framed))).capabilities.chunk_period_ms == 80
    own = shown(call(EchoPlugin())).capabilities
    assert own.implementation_level == "model_native_duplex"
    assert not own.supports_client_commit
    assert own.turn_detection_types == ()
    assert own.overlap_policies == ("listen_only",)


def test_a_persona_that_stays_is_said_and_kept_once_it_has_spoken() -> None:
    persona = Persona(reads_instructions=False, stays=True, sampling=True)
    made = call(FakePlugin(Capabilities(persona=persona, voices=("heart", "bella"))), seed=7)
    able = shown(made).capabilities
    assert (able.supports_instructions, able.supports_persona_update) == (False, False)
    assert able.supports_sampling
    assert (shown(made).seed, shown(made).top_k) == (7, None)
    bella = AudioPatch(output=AudioOutputPatch(voice="bella"))
    made.send(UpdateSession(session=DuplexPatch(audio=bella, top_k=40)))
    assert shown(made).audio.output.voice == "bella"
    answered(made)
    heart = AudioPatch(output=AudioOutputPatch(voice="heart"))
    made.send(UpdateSession(session=DuplexPatch(audio=heart, idle_timeout_s=60)))
    refused = made.client.error().error
    assert (refused.code, refused.param) == ("cannot_update_voice", "session.audio.output.voice")
    made.send(UpdateSession(session=DuplexPatch(audio=bella, instructions="x", top_k=3)))
    assert (shown(made).top_k, shown(made).idle_timeout_s) == (3, None)


def test_the_model_cannot_change() -> None:
    made = call()
    made.send(UpdateSession(session=DuplexPatch(model="other", instructions="x")))
    assert made.client.error().error.code == "model_update_unsupported"
    assert made.machine.config.instructions == ""
    made.send(UpdateSession(session=DuplexPatch(model="model", instructions="x")))
    assert shown(made).instructions == "x"


# Commits


def test_a_commit_ends_the_turn_and_is_answered() -> None:
    made = call()
    made.say(20)
    made.send(CommitTurn())
    assert len(made.client.of(AudioCommitted)) == 1
    assert len(made.client.of(ResponseCreated)) == 1


@pytest.mark.parametrize(
    ("auto", "wanted", "answers"),
    [(True, None, 1), (True, False, 0), (False, None, 0), (False, True, 1)],
)
def test_a_commit_is_answered_as_the_client_wants(
    auto: bool, wanted: bool | None, answers: int
) -> None:
    made = call(auto_response=auto)
    made.say(20)
    made.send(CommitTurn(response_create=wanted))
    assert len(made.client.of(ResponseCreated)) == answers


def test_a_turn_that_nobody_wants_answered_is_not() -> None:
    made = call(auto_response=False)
    made.hush(4)
    made.say(20)
    made.hush(80)
    assert len(made.client.of(AudioCommitted)) == 1
    assert made.client.of(ResponseCreated) == []


def test_a_commit_after_the_server_has_found_the_turn_is_no_mistake() -> None:
    made = call()
    made.hush(4)
    made.say(20)
    made.hush(80)
    made.send(CommitTurn())
    assert made.client.last(ResponseListen).response.reason == "silence_or_noise"
    assert len(made.client.of(AudioCommitted)) == 1
    assert made.client.of(ErrorEvent) == []


def test_speech_that_the_detector_has_not_judged_yet_is_committed() -> None:
    made = call()
    made.send(*[AppendAudio(audio=LOUD)] * 10, CommitTurn())
    assert len(made.client.of(AudioCommitted)) == 1


def test_a_model_that_decides_about_turns_hears_no_commits() -> None:
    made = call(EchoPlugin())
    made.send(AppendAudio(audio=LOUD), CommitTurn())
    assert made.client.last(ResponseListen).response.reason == "model_decides_turns"
    assert made.client.of(ErrorEvent) == []


# Speaking


def test_an_answer_says_that_it_speaks_and_in_what_format() -> None:
    made = call()
    response_id = answered(made)
    kinds = [type(event) for event in made.client.events]
    assert kinds.index(ResponseSpeak) == kinds.index(ContentPartAdded) + 1
    delta = made.client.last(FormattedAudioDelta)
    assert (delta.response_id, delta.format, delta.sample_rate_hz) == (response_id, "pcm16", 24000)


def test_a_model_may_say_that_it_listens() -> None:
    plugin = FakePlugin()
    made = call(plugin)
    plugin.then(Listen())
    made.say(1)
    made.send(CreateResponse())
    assert made.client.last(ResponseListen).response.reason == "model_decision"
    plugin = FakePlugin()
    plain = FakeCall(plugin)
    plugin.then(Listen())
    plain.send(CreateResponse())
    assert plain.client.of(ResponseListen) == []
    assert len(plain.client.of(ResponseCreated)) == 1


def test_a_model_that_remembers_less_is_told_of_and_counted_frames_are_seen_from_outside() -> None:
    counts = FrameCounts(frames=100, late_frames=2)
    plugin = FakePlugin()
    made = call(plugin)
    plugin.then(StreamNoted(counts), StreamNoted(counts, remembers_ms=4000))
    made.send(CreateResponse())
    assert [event.context_ms for event in made.client.of(ContextShortened)] == [4000]
    assert look_at(made.session, 0.0).stream == counts
    plain = FakeCall(plugin)
    assert look_at(plain.session, 0.0).stream is None
    plugin.then(StreamNoted(counts, remembers_ms=4000))
    plain.send(CreateResponse())
    assert plain.client.of(ContextShortened) == []
    assert look_at(plain.session, 0.0).stream == counts


# Interruptions


def test_a_client_may_interrupt_by_itself() -> None:
    made = call()
    response_id = answered(made)
    made.client.wire.interrupted(response_id)
    made.send(BargeIn())
    decided = made.client.last(OverlapDecided)
    assert (decided.action, decided.reason) == ("barge_in", "client_barge_in")
    assert made.client.last(ResponseDone).response.status == "cancelled"


def test_nothing_to_interrupt_is_no_mistake() -> None:
    made = call()
    made.send(BargeIn())
    assert [type(event) for event in made.client.events] == [SessionCreated, SessionUpdated]


@pytest.mark.parametrize("whole", [True, False])
def test_a_client_may_clear_the_sound(whole: bool) -> None:
    made = call()
    response_id = answered(made, whole=whole)
    made.send(ClearOutputAudio())
    assert made.client.last(OutputBufferCleared).response_id == response_id
    assert made.machine.speaking.playback.lead_s(made.clock.now()) == 0
    status = made.client.last(ResponseDone).response.status
    assert status == ("completed" if whole else "cancelled")


def test_where_there_was_never_any_sound_there_is_none_to_clear() -> None:
    made = call()
    made.send(ClearOutputAudio())
    assert made.client.error().error.code == "response_cancel_not_active"


def test_how_long_speech_must_be_to_interrupt_is_the_clients_choice() -> None:
    for asked_ms, cut in ((2000, 0), (100, 1)):
        made = call(overlap_barge_in_ms=asked_ms)
        assert shown(made).overlap_barge_in_ms == asked_ms
        made.hush(4)
        answered(made)
        made.say(15)
        done = made.client.of(ResponseDone)
        assert len(done) == cut


# The end


def test_the_last_word_of_a_session_that_its_client_closes() -> None:
    made = call()
    answered(made)
    made.send(CloseSession(reason="enough"))
    assert made.client.ended == "closed"
    assert made.client.events[-1] == SessionClosed(session_id=made.session.id, reason="enough")
    assert made.client.last(ResponseDone).response.status == "cancelled"


def test_the_last_word_of_a_session_that_the_server_ends() -> None:
    made = call()
    made.session.close("session_expired")
    expired = SessionExpired(
        session_id=made.session.id, reason="session_expired", rollover="new_session"
    )
    assert made.client.events[-1] == expired


def test_a_client_that_says_nothing_is_sent_away_and_one_that_does_is_not() -> None:
    made = call(idle_timeout_s=30.0)
    for said in (Heartbeat(), AcknowledgeEvents(server_event_seq=1), AppendAudio(audio=b"\0\0")):
        made.clock.advance(29)
        made.send(said)
    made.clock.advance(29)
    assert made.client.ended is None
    made.clock.advance(2)
    assert made.client.ended == "idle_timeout"
    assert isinstance(made.client.events[-1], SessionExpired)


# A camera

SEES = Capabilities(sees=True)


def test_a_frame_waits_for_the_next_turn_and_is_acknowledged_where_it_has_a_name() -> None:
    made = call(FakePlugin(SEES))
    assert shown(made).capabilities.supports_pictures
    made.send(ShowFrame(data=picture(50)), ShowFrame(data=picture(100), frame_id="f"))
    assert made.client.of(FrameAcknowledged) == [
        FrameAcknowledged(frame_id="f", buffered_frames=1, dropped_frame_ids=())
    ]
    made.send(CreateItem(item=MessageItem(id="i", role="user", content=(InputText(text="?"),))))
    assert made.client.of(FramesConsumed) == [
        FramesConsumed(item_id="i", frames=1, frame_ids=("f",))
    ]
    assert made.session.machine.history.view()[0].images != ()


def test_a_model_that_does_not_see_is_shown_nothing() -> None:
    made = call()
    assert not shown(made).capabilities.supports_pictures
    made.send(ShowFrame(data=picture(50), event_id="e", frame_id="f"))
    error = made.client.error().error
    assert (error.code, error.event_id) == ("unsupported", "e")
    assert made.client.of(FrameAcknowledged) == []


def test_a_frame_that_is_too_large_is_refused() -> None:
    made = call(FakePlugin(SEES))
    made.send(ShowFrame(data=bytes((1 << 20) + 1), event_id="e"))
    assert made.client.error().error.code == "limit_exceeded"


# Acknowledged events


@pytest.mark.parametrize(("seq", "errors"), [(0, 0), (2, 0), (3, 1), (-1, 1)])
def test_only_events_that_were_sent_can_have_been_received(seq: int, errors: int) -> None:
    made = call()
    made.send(AcknowledgeEvents(server_event_seq=seq, event_id="e"))
    refused = [event.error for event in made.client.of(ErrorEvent)]
    assert [error.code for error in refused] == ["invalid_event_ack"] * errors
    assert all(error.event_id == "e" for error in refused)
    assert len(made.client.events) == 2 + errors


def test_after_the_end_there_is_nothing_to_acknowledge() -> None:
    made = call()
    made.send(CloseSession())
    said = len(made.client.events)
    made.session.offer(AcknowledgeEvents(server_event_seq=1))
    made.session.offer(AcknowledgeEvents(server_event_seq=99))
    assert len(made.client.events) == said


def test_a_session_cannot_be_resumed_from_within() -> None:
    made = call()
    made.send(ResumeSession(session_id="s", resume_token="t"))
    assert made.client.error().error.code == "unsupported_session_resume"


def test_a_plain_session_adds_nothing() -> None:
    made = FakeCall(FakePlugin(Capabilities()))
    made.send(CloseSession(), Heartbeat(), AcknowledgeEvents(server_event_seq=1))
    assert {event.error.code for event in made.client.of(ErrorEvent)} == {"unsupported"}
    assert made.client.ended is None
