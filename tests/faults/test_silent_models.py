"""Models that never answer, and what was lost with them: a call with time and engine by hand."""

from __future__ import annotations

from duologue.clients.session_patches import session_patch
from duologue.duplex_plugins.cascaded.plugin import CascadedPlugin
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.engines.payloads import VoiceActivity
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
    UpdateSession,
)
from duologue.protocol.events import SpeechStopped, TranscriptionFailed
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine

SETTINGS = SessionSettings(
    response_timeout_s=20.0, listening=ListeningSettings(detector_timeout_s=5.0)
)


def make_call(*, by_hand: bool = False) -> FakeCall:
    plugin = CascadedPlugin(CascadedSettings(prefill=False))
    call = FakeCall(plugin, FakeEngine(pipelines=("vad", "asr", "llm", "tts")), SETTINGS)
    detection = None if by_hand else "server_vad"
    call.send(UpdateSession(session=session_patch(turn_detection=detection, transcription=True)))
    return call


def failures(call: FakeCall) -> list[str | None]:
    """Reasons of the responses that are over, all of them failed."""
    responses = [done.response for done in call.client.of(ResponseDone)]
    assert {response.status for response in responses} <= {"failed"}
    return [response.status_details and response.status_details.reason for response in responses]


def say_by_hand(call: FakeCall) -> None:
    call.send(AppendAudio(audio=b"\x01\x00" * 4800), CommitAudio())


def type_text(call: FakeCall) -> None:
    call.send(CreateItem(item=MessageItem(role="user", content=(InputText(text="Hello"),))))


def test_a_recogniser_that_never_answers_fails_the_response_and_is_cancelled() -> None:
    call = make_call()
    call.say(20)
    call.hush(20)
    recogniser = call.engine.only("asr")
    assert len(call.client.of(ResponseCreated)) == 1
    call.clock.advance(19.5)
    assert failures(call) == []
    call.clock.advance(0.5)
    assert failures(call) == ["stage_timeout"]
    assert recogniser.cancelled
    assert len(call.client.of(TranscriptionFailed)) == 1
    call.clock.advance(100.0)
    assert len(call.client.of(TranscriptionFailed)) == 1


def test_a_recogniser_that_nobody_waits_for_is_cancelled_in_time_too() -> None:
    call = make_call(by_hand=True)
    say_by_hand(call)
    call.clock.advance(10)
    say_by_hand(call)
    first, second = call.engine.of("asr")
    call.clock.advance(10.1)
    assert (first.cancelled, second.cancelled) == (True, False)
    call.clock.advance(10)
    assert second.cancelled
    assert len(call.client.of(TranscriptionFailed)) == 2


def test_a_turn_whose_words_are_lost_is_not_answered_as_silence() -> None:
    call = make_call(by_hand=True)
    say_by_hand(call)
    call.engine.fail(call.engine.only("asr").request.id, "replica_lost")
    call.send(CreateResponse())
    assert failures(call) == ["replica_lost"]
    type_text(call)
    call.send(CreateResponse())
    assert call.engine.only("llm")


def test_a_recogniser_that_ends_without_a_word_has_failed() -> None:
    call = make_call(by_hand=True)
    say_by_hand(call)
    call.send(CreateResponse())
    call.engine.complete(call.engine.only("asr").request.id)
    assert failures(call) == ["stage_failed"]


def test_lost_words_fail_every_response_that_waits_for_them_and_no_other() -> None:
    call = make_call(by_hand=True)
    type_text(call)
    call.send(CreateResponse())
    say_by_hand(call)
    call.send(CreateResponse(response=ResponseParams(conversation="none")))
    answer, waiting = call.client.of(ResponseCreated)
    call.engine.fail(call.engine.only("asr").request.id, "replica_lost")
    (done,) = call.client.of(ResponseDone)
    assert done.response.id == waiting.response.id
    assert call.client.wire.open_responses == [answer.response.id]


def test_a_detector_that_hangs_is_replaced_and_the_next_turn_is_found() -> None:
    call = make_call()
    call.say(20)
    call.hush(30)
    detector = call.engine.only("vad")
    for _ in range(3 * 25 + 5 * 25):
        hear_nothing(call)
    assert not detector.cancelled
    hear_nothing(call)
    hear_nothing(call)
    assert detector.cancelled
    call.engine.acknowledge_cancel(detector.request.id)
    for _ in range(2 * 25 + 1):
        hear_nothing(call)
    call.say(20)
    call.hush(20)
    assert len(call.client.of(SpeechStopped)) == 2


def hear_nothing(call: FakeCall) -> None:
    """40 ms of audio of which the detector says nothing."""
    call.clock.advance(0.04)
    call.send(AppendAudio(audio=bytes(2 * 960)))


def test_a_detector_that_is_behind_but_says_something_is_not_given_up() -> None:
    call = make_call()
    call.send(AppendAudio(audio=bytes(2 * 24_000 * 30)))
    call.clock.advance(1)
    detector = call.engine.only("vad")
    for second in range(1, 20):
        call.clock.advance(1)
        hear_nothing(call)
        call.engine.output(detector.request.id, VoiceActivity(0.01, 16_000 * second))
    assert not detector.cancelled
