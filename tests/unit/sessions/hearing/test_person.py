"""The person's side of a conversation, in a call without sockets."""

from __future__ import annotations

from duologue.duplex_plugins.contract import (
    Audio,
    Capabilities,
    ResponseRequested,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.engines.payloads import AudioChunk, EndOfTurn, TextDelta, Transcript
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio, CommitAudio, UpdateSession
from duologue.protocol.events import (
    AudioCleared,
    AudioCommitted,
    ErrorEvent,
    ItemAdded,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from duologue.protocol.response_events import ResponseDone
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

PROMPT = SessionSettings(listening=ListeningSettings(first_update_hold_s=0))
"""Turns are answered from the first moment on."""

READS = Capabilities(reads_transcripts=True)
HELD_MS = 2
"""What the resampler keeps back of the audio that has come in."""

SPEECH = AppendAudio(audio=b"\x01\x00" * 24000)


def make_call(
    capabilities: Capabilities = READS,
    *,
    pipelines: tuple[str, ...] = ("vad", "asr", STAGE),
    settings: SessionSettings | None = None,
) -> tuple[FakeCall, FakePlugin]:
    plugin = FakePlugin(capabilities)
    return FakeCall(plugin, FakeEngine(pipelines=pipelines), settings or PROMPT), plugin


def update(patch: AudioInputPatch) -> UpdateSession:
    return UpdateSession(session=SessionPatch(audio=AudioPatch(input=patch)))


def kinds(plugin: FakePlugin) -> list[TurnKind]:
    return [turn.kind for turn in plugin.of(Turn)]


# Turns


def test_a_turn_is_told_to_client_and_plugin_alike() -> None:
    call, plugin = make_call()
    call.hush(20)
    call.say(10)
    call.hush(20)
    (started,), (stopped,) = call.client.of(SpeechStarted), call.client.of(SpeechStopped)
    (committed,) = call.client.of(AudioCommitted)
    assert started.item_id == stopped.item_id == committed.item_id
    assert (started.audio_start_ms, stopped.audio_end_ms) == (340 - HELD_MS, 960 - HELD_MS)
    assert kinds(plugin) == [TurnKind.STARTED, TurnKind.PAUSING, TurnKind.COMMITTED]
    assert len(plugin.of(ResponseRequested)) == 1


def test_a_plugin_that_hears_turns_gets_each_with_its_recording() -> None:
    call, plugin = make_call(Capabilities(hears_turns=True), pipelines=("vad", STAGE))
    call.hush(20)
    call.say(10)
    call.hush(20)
    *others, committed = plugin.of(Turn)
    assert [turn.recording for turn in others] == [None] * len(others)
    recording = committed.recording
    assert recording is not None
    assert recording.rate_hz == 16_000
    assert recording.start_sample + recording.samples == committed.sample
    assert 4_000 < recording.pcm.count(b"\x01\x00") < recording.samples

    call.send(update(AudioInputPatch(turn_detection=None)))
    call.send(SPEECH)
    call.send(CommitAudio())
    by_hand = plugin.of(Turn)[-1].recording
    assert by_hand is not None
    assert by_hand.pcm.count(b"\x01\x00") > 15_000


def test_a_pause_that_was_none_is_told_to_the_plugin_alone() -> None:
    call, plugin = make_call()
    call.say(10)
    call.hush(5)
    call.say(10)
    assert kinds(plugin) == [TurnKind.STARTED, TurnKind.PAUSING, TurnKind.RESUMED]
    assert call.client.of(SpeechStopped) == []


def test_a_client_may_answer_by_itself() -> None:
    call, plugin = make_call()
    call.send(update(AudioInputPatch(turn_detection=TurnDetectionPatch(create_response=False))))
    call.say(10)
    call.hush(20)
    assert len(call.client.of(AudioCommitted)) == 1
    assert plugin.of(ResponseRequested) == []


def test_the_end_of_turn_model_may_end_a_turn_early() -> None:
    call, _ = make_call(pipelines=("vad", "asr", "end_of_turn", STAGE))
    call.say(10)
    call.hush(9)
    judge = call.engine.only("end_of_turn")
    heard_until = call.machine.listening.audio.next_sample
    call.engine.output(judge.request.id, EndOfTurn(0.9, heard_until))
    assert len(call.client.of(AudioCommitted)) == 1


def test_a_turn_ends_where_the_client_stops_sending() -> None:
    call, _ = make_call()
    call.say(10)
    call.clock.advance(4.9)
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(0.2)
    (stopped,) = call.client.of(SpeechStopped)
    assert stopped.audio_end_ms == 320 - HELD_MS
    assert len(call.client.of(AudioCommitted)) == 1


def test_a_commit_by_hand_starts_no_answer() -> None:
    call, plugin = make_call(pipelines=("asr", STAGE))
    call.send(SPEECH, CommitAudio())
    assert kinds(plugin) == [TurnKind.COMMITTED]
    assert plugin.of(ResponseRequested) == []


def test_a_clear_is_answered_and_ends_the_turn_without_an_item() -> None:
    call, _ = make_call()
    call.say(10)
    call.send(ClearAudio())
    call.hush(30)
    assert len(call.client.of(AudioCleared)) == 1
    assert call.client.of(AudioCommitted) == []


def test_a_turn_that_the_client_takes_away_is_told_to_the_plugin() -> None:
    call, plugin = make_call()
    call.say(10)
    call.send(ClearAudio())
    call.say(10)
    call.send(update(AudioInputPatch(turn_detection=None)))
    assert kinds(plugin) == [TurnKind.STARTED, TurnKind.ABANDONED] * 2


def test_a_turn_that_nobody_knew_of_is_taken_away_without_a_word() -> None:
    call, plugin = make_call()
    call.say(10)
    call.hush(20)
    call.engine.output(call.engine.only(STAGE).request.id, AudioChunk(b"\x00\x00" * 48000, 24000))
    call.clock.advance(0.5)
    call.say(5)
    call.send(ClearAudio())
    assert TurnKind.ABANDONED not in kinds(plugin)


def test_a_model_that_hears_gets_the_audio() -> None:
    call, plugin = make_call(Capabilities(hears_audio=True, input_rate_hz=24000))
    call.send(SPEECH, AppendAudio(audio=b"\x01"))
    (heard,) = plugin.of(Audio)
    assert heard.frame.pcm == SPEECH.audio


def test_a_full_buffer_is_the_clients_mistake() -> None:
    settings = SessionSettings(input_buffer_ms=1000)
    call, _ = make_call(settings=settings, pipelines=(STAGE,))
    call.send(
        AppendAudio(audio=SPEECH.audio[:-200]), AppendAudio(event_id="e1", audio=SPEECH.audio)
    )
    (error,) = call.client.of(ErrorEvent)
    assert (error.error.code, error.error.event_id) == ("input_audio_buffer_full", "e1")


# Transcripts


def test_a_transcript_reaches_the_plugin_whether_or_not_the_client_wants_it() -> None:
    call, plugin = make_call()
    call.say(10)
    call.hush(20)
    call.transcribe("hello")
    assert [(t.text, t.kind) for t in plugin.of(UserTranscript)] == [
        ("hello", TranscriptKind.FINAL)
    ]
    assert call.client.of(TranscriptionCompleted) == []
    assert call.machine.history.view()[0].text == "hello"


def test_a_client_that_wants_transcripts_gets_them_whether_or_not_the_plugin_does() -> None:
    call, plugin = make_call(Capabilities())
    call.send(update(AudioInputPatch(transcription=TranscriptionPatch())))
    call.say(10)
    recogniser = call.engine.only("asr")
    for text in ("hello", "hello there"):
        call.engine.output(recogniser.request.id, Transcript(text, "partial", 100))
    call.hush(20)
    call.transcribe("hello there")
    deltas = [event.delta for event in call.client.of(TranscriptionDelta)]
    assert deltas == ["hello", " there"]
    (completed,) = call.client.of(TranscriptionCompleted)
    assert completed.transcript == "hello there"
    assert plugin.of(UserTranscript)[-1].kind is TranscriptKind.FINAL


def test_a_right_speculation_is_final_with_the_commit() -> None:
    call, plugin = make_call()
    call.say(10)
    call.hush(5)
    call.transcribe("hello")
    call.hush(15)
    assert [t.kind for t in plugin.of(UserTranscript)] == [
        TranscriptKind.SPECULATIVE,
        TranscriptKind.FINAL,
    ]
    assert plugin.prompts == [[("user", "hello")]]


def test_an_answer_of_the_recogniser_that_is_no_news_is_not_passed_on() -> None:
    call, plugin = make_call()
    call.say(10)
    recogniser = call.engine.only("asr")
    call.engine.output(recogniser.request.id, Transcript("", "partial", 100))
    call.engine.output(recogniser.request.id, TextDelta("nonsense"))
    assert plugin.of(UserTranscript) == []


def test_a_lost_recogniser_fails_the_answer_that_waits_for_it() -> None:
    call, plugin = make_call()
    call.send(update(AudioInputPatch(transcription=TranscriptionPatch())))
    call.say(10)
    call.hush(20)
    call.engine.fail(call.engine.only("asr").request.id, "replica_lost")
    (failed,) = call.client.of(TranscriptionFailed)
    assert failed.item_id == call.client.last(AudioCommitted).item_id
    (done,) = call.client.of(ResponseDone)
    assert done.response.status_details.reason == "replica_lost"  # type: ignore[union-attr]
    assert plugin.prompts == [[("user", None)]]


def test_a_recogniser_that_ends_without_a_word_has_failed() -> None:
    call, _ = make_call()
    call.say(10)
    call.hush(20)
    call.engine.complete(call.engine.only("asr").request.id)
    (done,) = call.client.of(ResponseDone)
    assert done.response.status_details.reason == "stage_failed"  # type: ignore[union-attr]


def test_a_recogniser_that_is_lost_in_mid_turn_is_replaced() -> None:
    call, plugin = make_call()
    call.say(10)
    call.engine.fail(call.engine.only("asr").request.id)
    call.say(5)
    call.hush(20)
    call.transcribe("hello")
    assert [t.text for t in plugin.of(UserTranscript)] == ["hello"]


def test_a_recogniser_that_hangs_is_given_up() -> None:
    call, _ = make_call(settings=SessionSettings(response_timeout_s=10))
    call.say(10)
    call.hush(20)
    recogniser = call.engine.only("asr")
    call.clock.advance(9.8)
    assert not recogniser.cancelled
    assert call.client.of(ResponseDone) == []
    call.clock.advance(0.3)
    assert recogniser.cancelled
    (done,) = call.client.of(ResponseDone)
    assert done.response.status_details.reason == "stage_timeout"  # type: ignore[union-attr]


def test_only_the_recogniser_that_has_hung_too_long_is_given_up() -> None:
    call, _ = make_call(settings=SessionSettings(response_timeout_s=10))
    for _ in range(2):
        call.say(10)
        call.hush(20)
        call.clock.advance(4)
    assert len(call.engine.of("asr")) == 2
    call.clock.advance(4)
    cancelled = [fake.cancelled for fake in call.engine.of("asr")]
    assert cancelled == [True, False]


def test_without_a_recogniser_an_answer_that_needs_words_fails() -> None:
    call, plugin = make_call(pipelines=("vad", STAGE))
    call.say(10)
    call.hush(20)
    (done,) = call.client.of(ResponseDone)
    assert done.response.status == "failed"
    assert plugin.of(ResponseRequested) == []
    assert len(call.client.of(ItemAdded)) == 1


def test_without_a_recogniser_a_model_that_needs_no_words_answers() -> None:
    call, plugin = make_call(Capabilities(), pipelines=("vad", STAGE))
    call.say(10)
    call.hush(20)
    assert len(plugin.of(ResponseRequested)) == 1


# Detectors


def test_a_lost_detector_leaves_commits_by_hand() -> None:
    call, _ = make_call()
    call.say(2)
    call.engine.fail(call.engine.only("vad").request.id)
    call.say(30)
    assert call.client.of(ErrorEvent) == []
    call.send(CommitAudio())
    assert len(call.client.of(AudioCommitted)) == 1
    call.say(40)
    call.hush(20)
    assert len(call.client.of(SpeechStopped)) == 1


def test_where_the_engine_has_no_recogniser_none_is_started() -> None:
    settings = SessionSettings(listening=ListeningSettings(asr=None))
    call, _ = make_call(Capabilities(), settings=settings)
    call.say(10)
    assert call.engine.of("asr") == []
