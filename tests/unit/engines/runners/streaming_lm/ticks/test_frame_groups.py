from __future__ import annotations

import pytest

from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    capacity,
    plan_groups,
)


def cost(rows: int) -> float:
    """A model that reads its weights in 6 ms, and half a millisecond for each row."""
    return 0.0061 + 0.0005 * rows


@pytest.mark.parametrize(
    ("groups", "message_s", "wait_s"),
    [(1, 0.02, 0.03), (1, 0.08, 0.09), (2, 0.08, 0.05), (4, 0.08, 0.03), (8, 0.08, 0.02)],
)
def test_a_frame_waits_for_one_message_or_for_the_next_group(
    groups: int, message_s: float, wait_s: float
) -> None:
    assert StepTiming(message_s=message_s).longest_wait_s(groups) == pytest.approx(wait_s)


def test_wait_and_step_together_must_be_in_time() -> None:
    timing = StepTiming(message_s=0.080)
    assert not timing.fits(1, 0.001), "a message of a whole period leaves no time at all"
    assert timing.fits(2, 0.029)
    assert not timing.fits(2, 0.031)


def test_a_step_must_be_done_before_the_next_groups_begins() -> None:
    assert StepTiming(message_s=0.001).fits(2, 0.039)
    assert not StepTiming(message_s=0.001).fits(2, 0.041)


def test_the_fewest_groups_that_are_in_time_are_chosen() -> None:
    fine = StepTiming(message_s=0.020)
    assert plan_groups(80, cost, fine) == GroupPlan(1, 80, pytest.approx(0.03))
    assert plan_groups(120, cost, fine) == GroupPlan(2, 67, pytest.approx(0.03))
    assert plan_groups(90, cost, StepTiming()) == GroupPlan(2, 47, pytest.approx(0.05)), (
        "longer messages, more groups"
    )


def test_too_many_sessions_have_no_plan() -> None:
    assert plan_groups(400, cost, StepTiming()) is None
    assert plan_groups(1, lambda _: 0.2, StepTiming()) is None


def test_capacity_is_the_most_that_has_a_plan() -> None:
    for timing in (StepTiming(), StepTiming(message_s=0.020)):
        most = capacity(cost, timing, most=400)
        assert plan_groups(most, cost, timing) is not None
        assert plan_groups(most + 1, cost, timing) is None
    assert capacity(cost, StepTiming(), most=10) == 10
