"""A time-out counts time in which the process ran."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.running_timeout import LOOKS, RunningTimeout

T = 100.0
LIMIT_S = 15.0


def look_until(timeout: RunningTimeout, since: float, until: float) -> float | None:
    """Look whenever it is due; returns when it was over."""
    while (now := timeout.due_at(since)) <= until:
        if timeout.is_over(since, now):
            return now
    return None


def test_what_lasts_to_the_limit_is_over() -> None:
    assert look_until(RunningTimeout(LIMIT_S), T, T + 100) == T + LIMIT_S


@pytest.mark.parametrize("before_s", [0.5, 2.5, 10.5, 14.5])
def test_time_in_which_the_process_stood_still_does_not_count(before_s: float) -> None:
    timeout = RunningTimeout(LIMIT_S)
    assert look_until(timeout, T, T + before_s) is None
    late_s = T + before_s + 12 - timeout.due_at(T)
    assert not timeout.is_over(T, T + before_s + 12)
    over = look_until(timeout, T, T + 100)
    assert over == pytest.approx(max(T + LIMIT_S + late_s, T + before_s + 12 + LIMIT_S / LOOKS))


def test_a_look_that_comes_late_is_not_the_last_one() -> None:
    timeout = RunningTimeout(LIMIT_S)
    assert not timeout.is_over(T, T + 1000)
    assert timeout.due_at(T) > T + 1000
    assert look_until(timeout, T, T + 1100) == pytest.approx(T + 1000 + LIMIT_S - 1)


def test_what_begins_anew_has_all_its_time() -> None:
    timeout = RunningTimeout(LIMIT_S)
    assert look_until(timeout, T, T + 14) is None
    assert timeout.due_at(T + 14.5) == T + 15.5
    assert look_until(timeout, T + 14.5, T + 100) == pytest.approx(T + 14.5 + LIMIT_S)


def test_being_asked_early_changes_nothing_but_the_next_look() -> None:
    timeout = RunningTimeout(LIMIT_S)
    assert not any(timeout.is_over(T, T + n / 10) for n in range(150))
    assert timeout.is_over(T, T + LIMIT_S)


@given(late_s=st.floats(0, 60), limit_s=st.floats(0.5, 600))
def test_even_a_process_that_is_always_late_comes_to_an_end(late_s: float, limit_s: float) -> None:
    timeout = RunningTimeout(limit_s)
    for _ in range(2 * LOOKS + 2):
        now = timeout.due_at(T) + late_s
        if timeout.is_over(T, now):
            return
        assert timeout.due_at(T) > now
    raise AssertionError("it lasts for ever")
