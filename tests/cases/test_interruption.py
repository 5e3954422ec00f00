"""C11 to C23: interruptions, and what was heard."""

from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import ResponseRequested
from duologue.engines.payloads import AudioChunk, SpeechMark, TextDelta, VoiceActivity
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import (
    CancelResponse,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    TruncateItem,
)
from duologue.protocol.duplex.commands import AcknowledgePlayback
from duologue.protocol.duplex.events import PlaybackAcknowledged
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    ItemAdded,
    ItemTruncated,
    SpeechStarted,
    TranscriptionCompleted,
)
from duologue.protocol.items import FunctionCallItem, InputText, ItemReference, MessageItem
from duologue.protocol.json_codec import decode_command
from duologue.protocol.response_events import AudioDelta, OutputItemAdded, ResponseDone
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.cases.talk import (
    DETECTING,
    RATE_HZ,
    READS,
    WINDOW_MS,
    Talk,
    detection,
    listening,
    pcm,
    speech,
    transcription,
)

TEN_WORDS = "one two three four five six seven eight nine ten"
"""Said in ten seconds: word n is over after n seconds."""


def user_text(text: str) -> CreateItem:
    return CreateItem(item=MessageItem(role="user", content=(InputText(text=text),)))


def assistant_item(talk: Talk) -> str:
    return talk.client.of(OutputItemAdded)[-1].item.id


def heard_text(talk: Talk, item_id: str) -> str | None:
    return next((v.text for v in talk.machine.history.view() if v.id == item_id), None)


def test_c11_an_interruption_while_generating_stops_the_answer_where_it_was_heard() -> None:
    talk = Talk(DETECTING, READS)
    talk.turn()
    talk.transcribe("count to ten")
    response = talk.answer(TEN_WORDS, 10_000)
    talk.clock.advance(2.3)
    talk.say(12)  # 384 ms of speech, more than the 350 that confirm an interruption
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.client.wire.interrupted(response)
    talk.engine.output(talk.stage().request.id, AudioChunk(pcm(500), RATE_HZ))
    kinds = [type(event) for event in talk.client.events]
    confirmed = len(kinds) - 1 - kinds[::-1].index(SpeechStarted)
    assert AudioDelta not in kinds[confirmed:]
    (cut,) = talk.client.of(ItemTruncated)
    assert abs(cut.audio_end_ms - (2300 + 11 * WINDOW_MS)) <= 100
    # The client knows better: it stopped playing when the speech began.
    item_id = assistant_item(talk)
    talk.send(TruncateItem(item_id=item_id, audio_end_ms=2300))
    assert heard_text(talk, item_id) == "one two"
    talk.hush(20)
    talk.transcribe("stop")
    assert talk.plugin.prompts[-1][:2] == [("user", "count to ten"), ("assistant", "one two")]
    talk.finish()
    talk.close()


def test_c11_what_the_client_says_it_played_is_where_the_answer_is_cut() -> None:
    """Made at eight times the speed, played in real time, acknowledged every 100 ms."""
    quick = SessionSettings(listening=ListeningSettings(min_interruption_ms=60))
    talk = Talk(DETECTING, READS, settings=quick, patch=DuplexPatch())
    talk.turn()
    talk.transcribe("count to ten")
    response = talk.answer(TEN_WORDS, 0)
    stage = talk.stage().request.id
    words = TEN_WORDS.split()
    for step in range(1, 24):
        for second in range((step - 1) * 8 // 10, min(step * 8 // 10, 10)):
            talk.engine.output(stage, AudioChunk(pcm(1000), RATE_HZ))
            end = len(" ".join(words[: second + 1]))
            talk.engine.output(stage, SpeechMark(end, (second + 1) * RATE_HZ))
        talk.clock.advance(0.1)
        talk.send(AcknowledgePlayback(played_ms=step * 100))
    assert talk.client.last(PlaybackAcknowledged).event.playback.played_ms == 2300
    talk.say(2)
    confirmed_at = talk.clock.now()
    assert len(talk.client.of(SpeechStarted)) == 2
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.client.wire.interrupted(response)
    heard = len(talk.audio_of(response))
    talk.engine.output(stage, AudioChunk(pcm(500), RATE_HZ))
    (cut,) = talk.client.of(ItemTruncated)
    assert abs(cut.audio_end_ms - 2300) <= 100
    assert talk.clock.now() == confirmed_at, "all of it at the moment of the confirmation"
    assert heard_text(talk, assistant_item(talk)) == "one two"
    talk.hush(20)
    talk.transcribe("stop")
    assert talk.plugin.prompts[-1][:2] == [("user", "count to ten"), ("assistant", "one two")]
    assert len(talk.audio_of(response)) == heard
    assert talk.client.of(ErrorEvent) == []
    talk.finish()
    talk.close()


def test_c13_an_interruption_before_the_first_frame_leaves_nothing_heard() -> None:
    talk = Talk(DETECTING)
    talk.turn()
    talk.engine.output(talk.stage().request.id, TextDelta("Well"))
    item_id = assistant_item(talk)
    talk.say(3)
    talk.send(TruncateItem(item_id=item_id, audio_end_ms=0))
    assert talk.done() == [("cancelled", "turn_detected")]
    assert talk.client.of(ErrorEvent) == []
    assert talk.client.of(AudioDelta) == []
    assert heard_text(talk, item_id) is None
    talk.hush(20)
    assert len(talk.client.of(AudioCommitted)) == 2
    talk.finish()
    talk.probe()
    talk.close()


def test_c14_any_whole_position_is_taken_and_only_ever_shortens() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    talk.answer("one two three four", 2000)
    talk.finish()
    talk.play_to_the_end()
    item_id = assistant_item(talk)
    heard: list[tuple[int, str | None]] = []
    for end_ms in (2001, 10**12, 10**400, 1000, 1500, 500):
        talk.send(TruncateItem(item_id=item_id, audio_end_ms=end_ms))
        heard.append((talk.client.last(ItemTruncated).audio_end_ms, heard_text(talk, item_id)))
    assert heard == [
        (2001, "one two three four"),
        (10**12, "one two three four"),
        (10**400, "one two three four"),
        (1000, "one two"),
        (1500, "one two"),
        (500, "one"),
    ]
    talk.send(TruncateItem(event_id="e1", item_id=item_id, audio_end_ms=-1))
    body = talk.client.error().error
    assert (body.param, body.event_id) == ("audio_end_ms", "e1")
    assert heard_text(talk, item_id) == "one"
    talk.close()


@pytest.mark.parametrize("value", ["1.5", '"2000"', "null", "[]"])
def test_c14_a_position_that_is_no_whole_number_is_refused(value: str) -> None:
    envelope = b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":%b}'
    with pytest.raises(ProtocolError) as refusal:
        decode_command(envelope % value.encode())
    assert refusal.value.param == "audio_end_ms"


def test_c15_what_cannot_be_cut_says_why_each_in_its_own_words() -> None:
    talk = Talk()
    talk.send(user_text("hello"), CreateItem(item=FunctionCallItem(id="call", name="f")))
    talk.send(CreateResponse(response=ResponseParams(output_modalities=("text",))))
    talk.engine.output(talk.stage().request.id, TextDelta("written"))
    talk.finish()
    written = assistant_item(talk)
    talk.send(user_text("gone"))
    user, _, _, gone = (event.item.id for event in talk.client.of(ItemAdded))
    talk.send(DeleteItem(item_id=gone))
    before = talk.machine.history.view()
    for item_id in (user, "call", written, "unknown", gone):
        talk.send(TruncateItem(item_id=item_id, audio_end_ms=100))
    refused = zip((user, "call", written, "unknown", gone), talk.client.of(ErrorEvent), strict=True)
    messages = {event.error.message.replace(item_id, "") for item_id, event in refused}
    assert len(messages) == 5
    assert talk.machine.history.view() == before
    assert talk.client.of(ItemTruncated) == []
    talk.probe()
    talk.close()


def test_c17_the_speech_that_interrupts_is_heard_from_before_its_first_sample() -> None:
    talk = Talk(DETECTING, READS)
    talk.send(listening(format=FormatPatch(rate=16000)))
    talk.turn()
    talk.transcribe("go on")
    talk.answer(TEN_WORDS, 10_000)
    window = 512
    first = talk.machine.listening.audio.next_sample

    def frame(index: int) -> bytes:
        return b"".join((index * window + n & 0x7FFF).to_bytes(2, "little") for n in range(window))

    for index in range(60):
        talk.clock.advance(WINDOW_MS / 1000)
        talk.send(AppendAudio(audio=frame(index)))
        detector = talk.engine.only("vad")
        end = talk.machine.listening.audio.next_sample
        talk.engine.output(detector.request.id, VoiceActivity(0.95 if index >= 30 else 0.01, end))
    assert talk.done() == [("cancelled", "turn_detected")]
    (recogniser,) = [fake for fake in talk.engine.of("asr") if not fake.cancelled]
    chunks = [payload for payload in recogniser.inputs if isinstance(payload, AudioChunk)]
    onset = first + 30 * window
    assert chunks[0].start_sample == onset - 300 * 16
    ramp = b"".join(frame(index) for index in range(60))
    sent_from = (chunks[0].start_sample - first) * 2
    assert b"".join(chunk.pcm for chunk in chunks) == ramp[sent_from:]
    (_, started) = talk.client.of(SpeechStarted)
    assert started.audio_start_ms == chunks[0].start_sample // 16
    talk.close()


def test_c18_what_the_person_said_survives_the_cancel_of_its_answer() -> None:
    talk = Talk(capabilities=READS)
    talk.send(transcription(), speech(600), CommitAudio(), CreateResponse())
    recogniser = talk.engine.only("asr").request.id
    talk.answer("one two three", 3000)
    talk.clock.advance(1.5)
    talk.send(CancelResponse())
    assert recogniser in talk.engine.running
    talk.transcribe("first question")
    (completed,) = talk.client.of(TranscriptionCompleted)
    assert completed.transcript == "first question"
    talk.send(speech(600), CommitAudio())
    talk.transcribe("second question")
    talk.send(CreateResponse())
    assert talk.plugin.prompts[-1] == [
        ("user", "first question"),
        ("assistant", "one"),
        ("user", "second question"),
    ]
    talk.finish()
    talk.close()


def test_c19_text_does_not_interrupt_speech_unless_it_is_told_to() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    first = talk.answer("one two", 400)
    talk.send(user_text("wait"), CreateResponse(event_id="e1"))
    body = talk.client.error().error
    assert (body.code, body.event_id) == ("conversation_already_has_active_response", "e1")
    assert len(talk.machine.history) == 2
    talk.finish()
    talk.play_to_the_end()
    assert talk.audio_of(first) == pcm(400)
    assert talk.done() == [("completed", None)]
    talk.close()


def test_c19_text_that_is_told_to_interrupts_as_speech_does() -> None:
    talk = Talk(capabilities=READS)
    talk.send(user_text("count to ten"), CreateResponse())
    first = talk.answer(TEN_WORDS, 10_000)
    talk.clock.advance(2.3)
    stage = talk.stage().request.id
    talk.send(user_text("stop"), CreateResponse(response=ResponseParams(interrupt=True)))
    talk.client.wire.interrupted(first)
    talk.engine.output(stage, AudioChunk(pcm(500), RATE_HZ))
    assert talk.client.of(ErrorEvent) == []
    assert talk.done() == [("cancelled", "client_cancelled")]
    (cut,) = talk.client.of(ItemTruncated)
    assert cut.audio_end_ms == pytest.approx(2300, abs=100)
    assert talk.plugin.prompts[-1] == [
        ("user", "count to ten"),
        ("assistant", "one two"),
        ("user", "stop"),
    ]
    second = talk.answer("fine", 300)
    talk.finish()
    talk.play_to_the_end()
    assert talk.done()[1:] == [("completed", None)]
    assert talk.audio_of(second) == pcm(300)
    talk.close()


def test_c19_an_answer_that_is_all_sent_is_silenced_too() -> None:
    talk = Talk(capabilities=READS)
    talk.send(user_text("count"), CreateResponse())
    talk.answer("one two", 2000)
    talk.finish()
    talk.clock.advance(0.5)
    assert talk.done() == [("completed", None)]
    talk.send(CreateResponse(response=ResponseParams(interrupt=True)))
    (cut,) = talk.client.of(ItemTruncated)
    assert cut.audio_end_ms == pytest.approx(500, abs=50)
    assert talk.plugin.prompts[-1] == [("user", "count")]
    talk.finish()
    talk.close()


def test_c19_a_request_that_is_refused_interrupts_nothing() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    first = talk.answer("one two", 400)
    unknown = ResponseParams(interrupt=True, input=(ItemReference(id="nobody"),))
    talk.send(CreateResponse(event_id="e1", response=unknown))
    assert talk.client.error().error.code == "item_reference_invalid_item_id"
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("completed", None)]
    assert talk.audio_of(first) == pcm(400)
    talk.close()


def test_c20_a_murmur_or_a_cough_does_not_interrupt_but_a_sentence_does() -> None:
    """Without a soft pause: the answer goes on during the murmur, and loses nothing."""
    settings = SessionSettings(listening=ListeningSettings(min_interruption_ms=500))
    talk = Talk(DETECTING, settings=settings)
    talk.turn()
    response = talk.answer(TEN_WORDS, 10_000)
    talk.clock.advance(0.5)
    for windows in (8, 10):
        talk.say(windows)
        talk.hush(20)
    assert talk.done() == []
    assert len(talk.client.of(SpeechStarted)) == 1
    assert talk.audio_of(response) == pcm(len(talk.audio_of(response)) // 48)
    talk.say(28)
    assert talk.done() == [("cancelled", "turn_detected")]
    assert len(talk.client.of(SpeechStarted)) == 2
    talk.hush(20)
    talk.finish()
    talk.close()


def test_c20_a_murmur_costs_the_answer_no_sample() -> None:
    talk = Talk(DETECTING)
    talk.turn()
    response = talk.answer(TEN_WORDS, 10_000)
    talk.finish()
    talk.clock.advance(0.5)
    talk.say(8)
    talk.hush(20)
    talk.play_to_the_end()
    assert talk.audio_of(response) == pcm(10_000)
    talk.close()


def test_c23_an_answer_to_half_a_sentence_is_withdrawn_before_anybody_hears_it() -> None:
    talk = Talk(DETECTING, READS)
    talk.turn()
    talk.transcribe("I need")
    talk.engine.output(talk.stage().request.id, TextDelta("What do you"))
    talk.say(3)
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.say(17)
    talk.hush(20)
    talk.transcribe("a taxi")
    assert talk.plugin.prompts == [
        [("user", None)],
        [("user", "I need"), ("user", None)],
    ]
    talk.answer("Where to?", 500)
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("cancelled", "turn_detected"), ("completed", None)]
    cancelled = talk.client.of(ResponseDone)[0].response
    assert talk.audio_of(cancelled.id) == b""
    texts = [(view.role, view.text) for view in talk.machine.history.view()]
    assert texts == [("user", "I need"), ("user", "a taxi"), ("assistant", "Where to?")]
    talk.close()


def test_c20_with_interruptions_switched_off_both_talk_and_both_are_answered() -> None:
    talk = Talk(DETECTING)
    talk.send(detection(type="server_vad", interrupt_response=False))
    talk.turn()
    response = talk.answer(TEN_WORDS, 10_000)
    talk.finish()
    talk.turn()
    assert len(talk.plugin.of(ResponseRequested)) == 1
    talk.play_to_the_end()
    assert talk.audio_of(response) == pcm(10_000)
    assert len(talk.plugin.of(ResponseRequested)) == 2
    talk.finish()
    talk.close()


def ramp(ms: int) -> bytes:
    """Samples that can be told apart."""
    return b"".join((n % 30_000).to_bytes(2, "little") for n in range(ms * RATE_HZ // 1000))


def close_call(soft_pause_ms: int) -> tuple[Talk, str]:
    """A call in which little is sent ahead of playback, and ten seconds are being said."""
    ears = ListeningSettings(min_interruption_ms=500, soft_pause_ms=soft_pause_ms)
    talk = Talk(DETECTING, settings=SessionSettings(listening=ears, send_lead_ms=200, delta_ms=20))
    talk.turn()
    request, wave = talk.stage().request, ramp(10_000)
    for start in range(0, len(wave), 4800):
        talk.engine.output(request.id, AudioChunk(wave[start : start + 4800], RATE_HZ))
    talk.finish()
    talk.clock.advance(0.5)
    return talk, str(request.fence.lane)


def test_c20_an_answer_pauses_for_a_murmur_and_goes_on_at_the_next_sample() -> None:
    talk, response = close_call(soft_pause_ms=600)
    for windows in (8, 10):
        talk.say(3)  # 60 ms begin it
        held = len(talk.audio_of(response))
        talk.say(windows - 3)
        assert len(talk.audio_of(response)) == held
        talk.hush(5)
        assert len(talk.audio_of(response)) > held
        talk.hush(15)
    assert talk.done() == []
    assert len(talk.client.of(SpeechStarted)) == 1
    played = talk.audio_of(response)
    assert played == ramp(10_000)[: len(played)]
    talk.say(28)
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.hush(20)
    talk.finish()
    talk.close()


def test_c20_what_stays_undecided_for_too_long_holds_nothing_up() -> None:
    talk, response = close_call(soft_pause_ms=300)
    talk.say(3)
    held = len(talk.audio_of(response))
    talk.say(8)
    assert len(talk.audio_of(response)) == held
    talk.say(3)
    assert len(talk.audio_of(response)) > held
    talk.hush(20)
    talk.play_to_the_end()
    assert talk.audio_of(response) == ramp(10_000)
    assert talk.done() == [("completed", None)]
    talk.close()
