"""C07 and C08: fifty turns one after the other, and one that does not end."""

from __future__ import annotations

import random

from duologue.duplex_plugins.contract import ResponseRequested
from duologue.protocol.events import AudioCommitted, ErrorEvent, SpeechStarted, SpeechStopped
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import DETECTING, WINDOW_MS, Talk, detection

TURNS = 50
SPEECH = 1500 // WINDOW_MS
SILENCE = 900 // WINDOW_MS
LONG_CALL = SessionSettings(max_duration_s=7200)


def fifty_calls() -> Talk:
    talk = Talk(DETECTING, settings=LONG_CALL)
    talk.send(detection(type="server_vad"))
    return talk


def waits(talk: Talk) -> list[float]:
    """Time from each commit to the answer that it led to, as the client saw them."""
    return [created - committed for committed, created in zip(*moments(talk), strict=True)]


def moments(talk: Talk) -> tuple[list[float], list[float]]:
    return talk.seen[AudioCommitted], talk.seen[ResponseCreated]  # type: ignore[attr-defined]


def watch(talk: Talk) -> None:
    """Note when commits and new answers reach the client."""
    talk.seen = {AudioCommitted: [], ResponseCreated: []}  # type: ignore[attr-defined]
    known = len(talk.client.deliveries)
    read = talk.client.read

    def reading(max_bytes: int = 16 * 1024) -> None:
        nonlocal known
        read(max_bytes)
        for event in talk.client.events[known:]:
            if type(event) in talk.seen:  # type: ignore[attr-defined]
                talk.seen[type(event)].append(talk.clock.now())  # type: ignore[attr-defined]
        known = len(talk.client.deliveries)

    talk.client.read = reading  # type: ignore[method-assign]


def check_in_turn(talk: Talk) -> None:
    """Each turn was heard once, and its answer began with its commit or soon after."""
    assert len(talk.client.of(SpeechStarted)) == TURNS
    kinds = [type(e) for e in talk.client.events if isinstance(e, AudioCommitted | ResponseCreated)]
    assert kinds == [AudioCommitted, ResponseCreated] * TURNS
    assert max(waits(talk)) <= 0.5
    assert talk.client.of(ErrorEvent) == []


def test_c07_fifty_calm_turns_are_fifty_answers() -> None:
    talk, chance = fifty_calls(), random.Random(7)
    watch(talk)
    for number in range(TURNS):
        talk.say(SPEECH)
        talk.hush(SILENCE)
        talk.answer(f"answer {number}", 1200)
        talk.finish()
        talk.clock.advance(1.2)
        assert len(talk.done()) == number + 1
        talk.hush(int(chance.uniform(0, 5) * 1000 / WINDOW_MS))
    assert len(talk.client.of(AudioCommitted)) == TURNS
    assert len(talk.client.of(ResponseCreated)) == TURNS
    assert talk.done() == [("completed", None)] * TURNS
    check_in_turn(talk)
    talk.close()


def test_c07_fifty_turns_that_each_end_inside_the_answer_before() -> None:
    talk = fifty_calls()
    watch(talk)
    for number in range(TURNS):
        talk.say(SPEECH)
        talk.hush(SILENCE)
        talk.answer(f"answer {number}", 12_000)
        talk.finish()
        # The next turn begins and ends while this would still be playing.
        talk.hush(40)
    talk.play_to_the_end()
    assert len(talk.client.of(AudioCommitted)) == TURNS
    assert len(talk.client.of(ResponseCreated)) == TURNS
    interrupted = [("cancelled", "turn_detected")] * (TURNS - 1)
    assert talk.done() == [*interrupted, ("completed", None)]
    check_in_turn(talk)
    talk.close()


def test_c07_fifty_turns_inside_the_playback_of_answers_that_are_all_sent() -> None:
    """Short answers are all sent when the next turn is committed: only their playback goes on."""
    talk = fifty_calls()
    watch(talk)
    for number in range(TURNS):
        talk.say(SPEECH)
        talk.hush(SILENCE)
        talk.answer(f"answer {number}", 2500)
        talk.finish()
        assert talk.machine.speaking.active is None
        assert talk.machine.speaking.playback.lead_s(talk.clock.now()) > 2
    assert len(talk.client.of(AudioCommitted)) == TURNS
    assert [status for status, _ in talk.done()] == ["completed"] * TURNS
    check_in_turn(talk)
    talk.close()


def test_c08_speech_that_never_ends_is_one_turn_and_held_within_bounds() -> None:
    talk = fifty_calls()
    limit_ms = LONG_CALL.listening.max_turn_ms
    held = []
    for _ in range(90_000 // WINDOW_MS):
        talk.say(1)
        held.append(talk.machine.listening.audio.held_ms)
    (started,) = talk.client.of(SpeechStarted)
    (stopped,) = talk.client.of(SpeechStopped)
    (committed,) = talk.client.of(AudioCommitted)
    assert started.item_id == stopped.item_id == committed.item_id
    assert abs(stopped.audio_end_ms - started.audio_start_ms - limit_ms) <= 2 * WINDOW_MS
    assert max(held) <= limit_ms + 1000
    assert len(talk.plugin.of(ResponseRequested)) == 1
    talk.answer("pardon?", 500)
    talk.finish()
    talk.say(limit_ms * 3 // WINDOW_MS)
    assert talk.machine.listening.audio.held_ms <= limit_ms + 1000
    assert len(talk.client.of(SpeechStarted)) == 1
    assert talk.done() == [("completed", None)]
    # The noise ends, and the detector is as good as before.
    talk.hush(20)
    before = len(talk.client.of(AudioCommitted))
    talk.turn()
    assert len(talk.client.of(AudioCommitted)) == before + 1
    assert len(talk.client.of(SpeechStarted)) == len(talk.client.of(SpeechStopped))
    talk.finish()
    assert talk.client.of(ErrorEvent) == []
    assert talk.client.last(ResponseDone).response.status == "completed"
    talk.close()


def test_c08_a_person_who_goes_on_past_the_longest_turn_loses_no_word() -> None:
    talk = fifty_calls()
    limit_ms = LONG_CALL.listening.max_turn_ms
    talk.say(limit_ms // WINDOW_MS + 60)
    (stopped,) = talk.client.of(SpeechStopped)
    talk.hush(5)
    # At the first pause it turns out to be a person: the next turn begins where the last one ended.
    _, following = talk.client.of(SpeechStarted)
    assert following.audio_start_ms == stopped.audio_end_ms
    # They are not done, so the answer to the first part is withdrawn before anybody hears it.
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.say(30)
    talk.hush(20)
    assert len(talk.client.of(AudioCommitted)) == 2
    assert len(talk.plugin.of(ResponseRequested)) == 2
    talk.answer("finally", 500)
    talk.finish()
    talk.play_to_the_end()
    assert talk.client.last(ResponseDone).response.status == "completed"
    talk.close()
