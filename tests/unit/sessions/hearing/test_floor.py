"""The person's floor, from detector windows to the edges of turns."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from duologue.sessions.hearing.floor import (
    EndOfTurnWanted,
    FloorEvent,
    FloorPolicy,
    FloorState,
    SpeechBegan,
    SpeechPaused,
    SpeechResumed,
    TurnOver,
    UserFloor,
)

RATE_HZ = 16000
WINDOW = 512
"""32 ms."""

SPEECH, UNSURE, SILENCE = 0.9, 0.4, 0.1


def hear(floor: UserFloor, probabilities: Iterable[float], start: int = 0) -> list[FloorEvent]:
    """Feed windows, the first of which begins at the ``start``-th window."""
    events: list[FloorEvent] = []
    for index, probability in enumerate(probabilities, start + 1):
        events += floor.on_window(probability, index * WINDOW)
    return events


def make_floor(policy: FloorPolicy | None = None) -> UserFloor:
    return UserFloor(policy or FloorPolicy(), RATE_HZ)


def test_a_turn_begins_with_its_padding_and_ends_where_the_silence_began() -> None:
    events = hear(make_floor(), [SILENCE] * 20 + [SPEECH] * 10 + [SILENCE] * 20)
    onset, end = 20 * WINDOW, 30 * WINDOW
    assert events == [SpeechBegan(onset - 4800), SpeechPaused(end), TurnOver(end)]


def test_the_turn_begins_as_soon_as_there_is_enough_speech_in_a_row() -> None:
    floor = make_floor()
    assert hear(floor, [SILENCE] * 20 + [SPEECH]) == []
    assert hear(floor, [SPEECH], 21) == [SpeechBegan(20 * WINDOW - 4800)]


def test_a_click_begins_nothing() -> None:
    assert hear(make_floor(), [SILENCE, SPEECH, SILENCE] * 20) == []


def test_padding_does_not_reach_before_the_first_sample_or_into_the_turn_before() -> None:
    floor = make_floor(FloorPolicy(silence_ms=96))
    first = hear(floor, [SPEECH] * 5 + [SILENCE] * 3)
    assert first[0] == SpeechBegan(0)
    (over,) = [event for event in first if isinstance(event, TurnOver)]
    assert hear(floor, [SPEECH] * 5, 8) == [SpeechBegan(over.end_sample)]


def test_between_the_two_thresholds_nothing_changes() -> None:
    floor = make_floor()
    assert hear(floor, [UNSURE] * 50) == []
    hear(floor, [SPEECH] * 5, 50)
    assert hear(floor, [UNSURE] * 50, 55) == []
    assert floor.state is FloorState.SPEAKING


def test_a_pause_that_was_none_is_taken_back() -> None:
    events = hear(make_floor(), [SPEECH] * 5 + [SILENCE] * 5 + [SPEECH] * 5 + [SILENCE] * 30)
    assert events == [
        SpeechBegan(0),
        SpeechPaused(5 * WINDOW),
        SpeechResumed(10 * WINDOW),
        SpeechPaused(15 * WINDOW),
        TurnOver(15 * WINDOW),
    ]


def test_only_speech_counts_as_speech() -> None:
    floor = make_floor()
    hear(floor, [SPEECH] * 5 + [UNSURE] * 5 + [SILENCE] * 5 + [SPEECH] * 2)
    assert floor.voiced_samples == 7 * WINDOW


SHORT = FloorPolicy(max_turn_ms=1024)
"""32 windows at the most."""


def test_a_turn_never_gets_longer_than_the_limit_and_a_noise_is_no_other() -> None:
    floor = make_floor(SHORT)
    assert hear(floor, [SPEECH] * 200) == [SpeechBegan(0), TurnOver(32 * WINDOW)]
    assert floor.goes_on_from == 192 * WINDOW, "what must be kept of it is bounded"
    # It ends, and all is as before.
    hear(floor, [SILENCE] * 20, 200)
    assert floor.goes_on_from is None
    assert hear(floor, [SPEECH] * 2, 220) == [SpeechBegan(220 * WINDOW - 4800)]


def test_who_goes_on_past_the_limit_loses_no_word() -> None:
    floor = make_floor(SHORT)
    hear(floor, [SPEECH] * 40)
    assert floor.goes_on_from == 32 * WINDOW
    events = hear(floor, [SILENCE] * 3, 40)
    assert events == [SpeechBegan(32 * WINDOW), SpeechPaused(40 * WINDOW)]
    assert floor.voiced_samples == 8 * WINDOW
    assert floor.goes_on_from is None
    assert hear(floor, [SPEECH] * 5, 43) == [SpeechResumed(43 * WINDOW)]
    events = hear(floor, [SILENCE] * 20, 48)
    assert events == [SpeechPaused(48 * WINDOW), TurnOver(48 * WINDOW)]


def test_who_ends_right_after_the_limit_has_said_it_all() -> None:
    floor = make_floor(FloorPolicy(max_turn_ms=1024, silence_ms=96))
    hear(floor, [SPEECH] * 33)
    assert hear(floor, [SILENCE] * 20, 33) == []
    assert floor.goes_on_from is None
    hear(floor, [SPEECH] * 36, 53)
    events = hear(floor, [SILENCE] * 3, 89)
    assert events == [SpeechBegan(85 * WINDOW), SpeechPaused(89 * WINDOW), TurnOver(89 * WINDOW)]


def test_a_skipped_stretch_counts_as_one_window_and_is_no_speech() -> None:
    floor = make_floor()
    assert list(floor.on_window(SPEECH, 100 * WINDOW)) == []
    assert floor.on_window(SPEECH, 101 * WINDOW) == (SpeechBegan(100 * WINDOW - 640 - 4800),)


SEMANTIC = FloorPolicy(silence_ms=1200, check_ms=96, earliest_ms=160, end_threshold=0.5)


def test_the_end_of_turn_model_is_asked_once_in_a_pause() -> None:
    floor = make_floor(SEMANTIC)
    events = hear(floor, [SPEECH] * 5 + [SILENCE] * 3)
    assert events[1:] == [SpeechPaused(5 * WINDOW), EndOfTurnWanted(8 * WINDOW)]
    assert hear(floor, [SILENCE] * 7, 8) == []
    assert floor.on_end_of_turn(0.2, 8 * WINDOW) == ()
    assert hear(floor, [SILENCE] * 9, 15) == []


def test_a_yes_ends_the_turn_but_not_before_the_earliest_moment() -> None:
    floor = make_floor(SEMANTIC)
    hear(floor, [SPEECH] * 5 + [SILENCE] * 3)
    assert floor.on_end_of_turn(0.9, 8 * WINDOW) == ()
    assert hear(floor, [SILENCE], 8) == []
    assert hear(floor, [SILENCE], 9) == [TurnOver(5 * WINDOW)]


def test_a_late_yes_ends_the_turn_at_once() -> None:
    floor = make_floor(SEMANTIC)
    hear(floor, [SPEECH] * 5 + [SILENCE] * 10)
    assert floor.on_end_of_turn(0.9, 8 * WINDOW) == (TurnOver(5 * WINDOW),)


def test_an_answer_about_a_pause_that_is_over_counts_nothing() -> None:
    floor = make_floor(SEMANTIC)
    hear(floor, [SPEECH] * 5 + [SILENCE] * 5 + [SPEECH] * 2)
    assert floor.on_end_of_turn(0.9, 8 * WINDOW) == ()
    assert hear(floor, [SILENCE] * 6, 12) == [
        SpeechPaused(12 * WINDOW),
        EndOfTurnWanted(15 * WINDOW),
    ]
    assert floor.on_end_of_turn(0.9, 8 * WINDOW) == ()
    assert floor.on_end_of_turn(0.9, 15 * WINDOW) == (TurnOver(12 * WINDOW),)


def test_silence_ends_the_turn_where_the_model_never_says_yes() -> None:
    events = hear(make_floor(SEMANTIC), [SPEECH] * 5 + [SILENCE] * 60)
    assert events[-1] == TurnOver(5 * WINDOW)


def test_a_short_silence_limit_ends_the_turn_at_the_pause() -> None:
    policy = FloorPolicy(pause_ms=96, silence_ms=96)
    events = hear(make_floor(policy), [SPEECH] * 5 + [SILENCE] * 3)
    assert events[1:] == [SpeechPaused(5 * WINDOW), TurnOver(5 * WINDOW)]


def test_a_turn_can_be_ended_from_outside_at_the_last_speech() -> None:
    floor = make_floor()
    hear(floor, [SPEECH] * 5)
    assert floor.force_end() == (TurnOver(5 * WINDOW),)
    assert floor.force_end() == ()
    hear(floor, [SPEECH] * 5 + [SILENCE] * 4, 5)
    assert floor.force_end() == (TurnOver(10 * WINDOW),)


def test_an_abandoned_turn_ends_without_a_word_and_the_next_one_begins_after_it() -> None:
    floor = make_floor()
    hear(floor, [SPEECH] * 5)
    floor.abandon()
    assert floor.state is FloorState.SILENT
    assert hear(floor, [SPEECH] * 2, 5) == [SpeechBegan(5 * WINDOW)]


def test_windows_of_audio_that_the_client_took_say_nothing() -> None:
    floor = make_floor()
    hear(floor, [SPEECH] * 5)
    floor.abandon(until_sample=20 * WINDOW)
    assert hear(floor, [SPEECH] * 15, 5) == []
    assert hear(floor, [SPEECH] * 2, 20) == [SpeechBegan(20 * WINDOW)]


def test_another_policy_counts_from_the_next_window_on() -> None:
    floor = make_floor()
    hear(floor, [SPEECH] * 5 + [SILENCE] * 5)
    floor.set_policy(FloorPolicy(silence_ms=192))
    assert hear(floor, [SILENCE], 10) == [TurnOver(5 * WINDOW)]


WINDOWS = st.lists(
    st.tuples(st.sampled_from([SPEECH, UNSURE, SILENCE]), st.integers(1, 30)), max_size=30
)
ACTIONS = st.sampled_from(["yes", "no", "force", "abandon", "nothing", "nothing"])


@given(runs=WINDOWS, actions=st.lists(ACTIONS, max_size=30), semantic=st.booleans())
def test_edges_alternate_and_move_forward_whatever_happens(
    runs: list[tuple[float, int]], actions: list[str], semantic: bool
) -> None:
    floor = make_floor(SEMANTIC if semantic else FloorPolicy())
    heard = 0
    events: list[FloorEvent] = []
    abandoned: list[int] = []
    for index, (probability, count) in enumerate(runs):
        events += hear(floor, [probability] * count, heard)
        heard += count
        match actions[index] if index < len(actions) else "nothing":
            case "yes":
                events += floor.on_end_of_turn(1.0, heard * WINDOW)
            case "no":
                events += floor.on_end_of_turn(0.0, heard * WINDOW)
            case "force":
                events += floor.force_end()
            case "abandon":
                floor.abandon()
                abandoned.append(len(events))
    check_grammar(events, abandoned)


def check_grammar(events: list[FloorEvent], abandoned: list[int]) -> None:
    state, latest = "silent", 0
    for index, event in enumerate(events):
        if index in abandoned:
            state = "silent"
        match event:
            case SpeechBegan(start_sample=sample):
                assert state == "silent"
                state = "speaking"
            case SpeechPaused(end_sample=sample):
                assert state == "speaking"
                state = "pausing"
            case SpeechResumed(sample=sample):
                assert state == "pausing"
                state = "speaking"
            case EndOfTurnWanted(sample=sample):
                assert state == "pausing"
            case TurnOver(end_sample=sample):
                assert state != "silent"
                state, latest = "silent", sample
        if isinstance(event, SpeechBegan | TurnOver):
            assert sample >= latest
            latest = sample


def test_the_floor_is_voiced_until_a_window_is_silent() -> None:
    floor = UserFloor(FloorPolicy(pause_ms=96), RATE_HZ)
    for number, (probability, voiced) in enumerate(
        [(0.9, True), (0.9, True), (0.1, False), (0.4, True), (0.1, False), (0.9, True)], 1
    ):
        floor.on_window(probability, number * WINDOW)
        assert floor.is_voiced == voiced
