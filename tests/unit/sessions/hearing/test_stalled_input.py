"""Clients that send nothing more in mid-speech, in calls without sockets."""

from __future__ import annotations

from duologue.engines.payloads import VoiceActivity
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.events import AudioCommitted, SpeechStarted, SpeechStopped
from duologue.sessions.hearing.stalled_input import LOOK_AGAIN_S
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.fakes.call import SILENCE, SPEECH, WINDOW_SAMPLES, FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

LOUD = b"\x00\x20" * (len(SPEECH) // 2)
SETTINGS = SessionSettings(
    listening=ListeningSettings(
        first_update_hold_s=0, stalled_input_s=5.0, detector_timeout_s=10.0, echo_suppression=False
    )
)


def make_call() -> FakeCall:
    engine = FakeEngine(pipelines=("vad", "asr", STAGE))
    return FakeCall(FakePlugin(), engine, SETTINGS)


def send_at_once(call: FakeCall, windows: int, pcm: bytes = LOUD) -> None:
    """Sound comes, and the detector says nothing of it."""
    call.send(*(AppendAudio(audio=pcm) for _ in range(windows)))


def judge(call: FakeCall, until: int, probability: float) -> None:
    """The detector's windows up to a sample come at last."""
    (detector,) = call.engine.of("vad")
    end = call.machine.listening.floor.judged_until
    while end < until:
        end = min(end + WINDOW_SAMPLES, until)
        call.engine.output(detector.request.id, VoiceActivity(probability, end))


def spoken_until(call: FakeCall) -> list[int]:
    return [stopped.audio_end_ms for stopped in call.client.of(SpeechStopped)]


def heard_ms(call: FakeCall) -> int:
    return call.machine.listening.audio_ms()


def test_words_that_the_detector_has_not_judged_yet_belong_to_the_turn() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    send_at_once(call, 20)
    words_end = call.machine.listening.audio.next_sample
    said_ms = heard_ms(call)
    send_at_once(call, 25, SILENCE)
    call.clock.advance(9.0)
    assert call.client.of(AudioCommitted) == []
    judge(call, words_end, 0.95)
    judge(call, call.machine.listening.audio.next_sample, 0.01)
    assert spoken_until(call) == [said_ms]
    assert len(call.client.of(AudioCommitted)) == 1


def test_a_detector_that_works_off_much_is_waited_for() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    send_at_once(call, 200)
    judged = call.machine.listening.floor.judged_until
    for step in range(1, 7):
        call.clock.advance(9.0)
        judge(call, judged + step * 10 * WINDOW_SAMPLES, 0.95)
    assert call.client.of(AudioCommitted) == []


def test_once_all_is_judged_the_client_has_stopped_sending() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    send_at_once(call, 20)
    call.clock.advance(8.0)
    judge(call, call.machine.listening.audio.next_sample, 0.95)
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(LOOK_AGAIN_S + 0.01)
    assert spoken_until(call) == [heard_ms(call)]


def test_a_turn_whose_detector_hangs_ends_with_all_that_was_heard() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    send_at_once(call, 20)
    call.clock.advance(9.9)
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(LOOK_AGAIN_S + 0.2)
    assert spoken_until(call) == [heard_ms(call)]
    # What it says of that at last is no turn of its own.
    judge(call, call.machine.listening.audio.next_sample, 0.95)
    assert len(call.client.of(SpeechStarted)) == 1


def test_a_turn_whose_detector_is_gone_ends_with_all_that_was_heard() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    (detector,) = call.engine.of("vad")
    call.engine.fail(detector.request.id)
    send_at_once(call, 20)
    call.clock.advance(5.1)
    assert spoken_until(call) == [heard_ms(call)]


def test_silence_that_is_not_judged_keeps_nobody_waiting() -> None:
    call = make_call()
    call.say(10, pcm=LOUD)
    said_ms = heard_ms(call)
    call.hush(1)  # the resampler holds the last of the words back until then
    send_at_once(call, 20, SILENCE)
    call.clock.advance(4.9)
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(0.2)
    assert spoken_until(call) == [said_ms]


def test_nobody_is_waited_for_where_there_is_no_turn() -> None:
    call = make_call()
    call.hush(10)
    send_at_once(call, 20)
    call.clock.advance(20.0)
    assert call.client.of(SpeechStarted) == []


def test_sound_that_waits_while_the_loop_stands_still_was_sent_in_time() -> None:
    call = make_call()
    call.say(10)
    send_at_once(call, 1, SILENCE * 60)
    call.clock.stall(6.0)
    call.clock.advance(1.0)
    assert call.client.of(AudioCommitted) == []
    assert heard_ms(call) > 2000
