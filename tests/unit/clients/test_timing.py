from __future__ import annotations

import pytest

from duologue.clients.timing import CallTiming, InputClock, first_audible


def test_the_wait_is_from_the_end_of_speech_to_the_first_audible_sample() -> None:
    turn = CallTiming().turn("a")
    assert turn.wait_s is None
    turn.speech_until, turn.audible_at = 10.0, 11.25
    assert turn.wait_s == pytest.approx(1.25)
    assert turn.since_speech(None) is None


def test_an_answer_belongs_to_the_turn_before_it() -> None:
    timing = CallTiming()
    assert timing.begin_response("greeting", 0.0) is None
    turn = timing.turn("a")
    assert timing.begin_response("r", 1.0) is turn
    assert timing.of_response("r") is turn
    assert timing.begin_response("unasked", 2.0) is None
    assert timing.of_response("unasked") is None
    assert timing.turn("a") is turn


def test_only_the_latest_turns_are_kept() -> None:
    timing = CallTiming(max_turns=2)
    for name in "abc":
        timing.turn(name)
    assert [turn.item_id for turn in timing] == ["b", "c"]
    assert len(timing) == 2


def test_a_position_of_the_microphone_has_a_time() -> None:
    clock = InputClock()
    for frame in range(50):
        clock.sent(0.02, 100.0 + 0.02 * (frame + 1))
    assert clock.position_s == pytest.approx(1.0)
    assert clock.time_of(500) == pytest.approx(100.5)
    assert clock.time_of(510) == pytest.approx(100.51)
    assert clock.time_of(0) == pytest.approx(100.0)


def test_a_pause_of_the_microphone_moves_what_comes_after_it() -> None:
    clock = InputClock()
    clock.sent(0.02, 10.0)
    clock.sent(0.02, 15.0)
    assert clock.time_of(40) == pytest.approx(15.0)


def test_what_was_said_too_long_ago_has_no_time() -> None:
    clock = InputClock()
    assert clock.time_of(0) is None
    for frame in range(5000):
        clock.sent(0.02, 0.02 * frame)
    assert clock.time_of(0) is None
    assert clock.time_of(99_000) is not None


def test_the_first_audible_sample_is_above_one_percent() -> None:
    quiet, loud = (300).to_bytes(2, "little"), (-400).to_bytes(2, "little", signed=True)
    assert first_audible(quiet * 10 + loud) == 10
    assert first_audible(quiet * 10) is None
    assert first_audible(b"") is None
