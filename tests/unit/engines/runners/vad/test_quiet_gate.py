from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.runners.vad.quiet_gate import QUIET_BELOW, QuietGate

WINDOW = 500  # half a second at 1 kHz


def admitted(*probabilities: float) -> list[int]:
    """Numbers of the windows that are worth a message."""
    gate = QuietGate(1000)
    return [
        number
        for number, probability in enumerate(probabilities)
        if gate.admits(probability, number * WINDOW, (number + 1) * WINDOW)
    ]


def test_two_seconds_of_quiet_are_reported_and_then_one_window_a_second() -> None:
    assert admitted(*[0.0] * 12) == [0, 1, 2, 3, 5, 7, 9, 11]


def test_whatever_happens_is_reported_at_once() -> None:
    assert admitted(*[0.0] * 5, QUIET_BELOW, 0.0, 0.9) == [0, 1, 2, 3, 5, 6, 7]


def test_quiet_is_counted_anew_after_sound() -> None:
    assert admitted(0.5, *[0.0] * 5, 0.5, *[0.0] * 5) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


@given(st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.7]), max_size=60))
def test_what_is_left_out_was_quiet_and_never_lasts_a_second(probabilities: list[float]) -> None:
    numbers = admitted(*probabilities)
    left_out = set(range(len(probabilities))) - set(numbers)
    assert all(probabilities[number] < QUIET_BELOW for number in left_out)
    assert not any({number, number + 1} <= left_out for number in left_out)
