from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import FrameBatch, FrameDeadline
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import GroupPlan

LIMITS = FeedLimits()
FRAME = LIMITS.frame_samples
PERIOD_S = LIMITS.period_s


def scheduler(groups: int = 2, rows: int = 4) -> FrameDeadline:
    return FrameDeadline(GroupPlan(groups, rows, 0.010 + PERIOD_S / groups), LIMITS, start=0.0)


def step(one: FrameDeadline, now: float) -> FrameBatch:
    batch = one.next_batch(now)
    assert isinstance(batch, FrameBatch)
    return batch


def test_without_sessions_there_is_nothing_to_wait_for() -> None:
    assert scheduler().next_batch(5.0) is None


def test_a_session_is_stepped_at_the_next_tick_of_its_group_and_not_before() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.01)
    one.arrived(0, FRAME, 0.05)
    assert one.next_batch(0.05) == pytest.approx(0.08)
    batch = step(one, 0.08)
    assert (batch.tick, batch.due) == (1, pytest.approx(0.08))
    assert [(cut.slot, cut.take) for cut in batch.cuts] == [(0, FRAME)]
    assert one.next_batch(0.08) == pytest.approx(0.16)


def test_groups_stand_at_equal_distances_in_the_period() -> None:
    one = scheduler(groups=4)
    for slot in range(4):
        one.join(slot, now=0.0)
    fired = []
    now = 0.0
    while len(fired) < 8:
        due = one.next_batch(now)
        if isinstance(due, FrameBatch):
            fired.append((due.group, round(due.due, 6)))
        else:
            assert due is not None
            now = due
    assert fired == [(n % 4, pytest.approx(0.02 * n)) for n in range(1, 9)]


def test_smallest_groups_are_filled_first_and_then_nobody_is_let_in() -> None:
    one = scheduler(groups=2, rows=2)
    for slot in range(4):
        one.join(slot, now=0.0)
    assert [one.group_of(slot) for slot in range(4)] == [0, 1, 0, 1]
    with pytest.raises(CapacityError, match="all 4 places"):
        one.join(4, now=0.0)
    one.leave(1)
    one.join(4, now=0.0)
    assert one.group_of(4) == 1


@pytest.mark.parametrize(
    ("arrives_at", "group"), [(0.07, 0), (0.08, 1), (0.114, 1), (0.118, 0), (0.15, 0)]
)
def test_the_group_is_the_one_whose_tick_follows_the_messages_soonest(
    arrives_at: float, group: int
) -> None:
    one = scheduler(groups=2)
    one.join(0, now=0.2, arrives_at=arrives_at, every_s=0.080)
    assert one.group_of(0) == group


def test_a_full_group_is_passed_over() -> None:
    one = scheduler(groups=2, rows=1)
    for slot in range(2):
        one.join(slot, now=0.2, arrives_at=0.07, every_s=0.080)
    assert one.group_of(1) == 1


def test_a_step_that_was_slow_is_made_up_for_within_the_period() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    assert step(one, 0.08).tick == 1
    assert step(one, 0.16 + 0.079).tick == 2
    assert step(one, 0.24).tick == 3
    assert one.totals().skipped_ticks == 0


def test_a_whole_period_behind_ticks_are_left_out_and_counted() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    assert step(one, 0.08).tick == 1
    late = step(one, 0.5)
    assert late.tick == 6
    assert late.due == pytest.approx(0.48)
    assert [cut.frame for cut in late.cuts] == [1], "frames of a session have no gap"
    assert one.counters(0).skipped_ticks == 4


def test_a_group_that_was_empty_has_missed_nothing() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    step(one, 0.08)
    one.leave(0)
    one.join(0, now=9.0)
    due = one.next_batch(9.0)
    assert isinstance(due, float)
    assert 9.0 < due <= 9.08
    assert step(one, due).cuts[0].frame == 0
    assert one.totals().skipped_ticks == 0


def test_a_slot_that_is_taken_again_at_once_is_not_stepped_twice_at_a_tick() -> None:
    one = scheduler(groups=1)
    first = one.join(0, now=0.0)
    step(one, 0.08)
    one.leave(0)
    second = one.join(0, now=0.08)
    assert second != first
    assert one.next_batch(0.08) == pytest.approx(0.16)


def test_a_frozen_slot_is_masked_and_what_comes_for_it_is_dropped() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    one.join(1, now=0.0)
    one.freeze(0)
    one.freeze(0)
    assert one.arrived(0, 500, 0.05) == 500
    assert [cut.slot for cut in step(one, 0.08).cuts] == [1]
    one.thaw(0, now=0.1)
    one.thaw(0, now=0.1)
    assert sorted(cut.slot for cut in step(one, 0.16).cuts) == [0, 1]
    assert one.counters(0).dropped_samples == 500
    one.freeze(1)
    assert one.leave(1).frames == 2


def test_late_is_more_than_eighty_milliseconds_after_the_last_sample_came() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    for tick, took_s, late in [(1, 0.069, 0), (2, 0.071, 1)]:
        due = tick * PERIOD_S
        one.arrived(0, FRAME, due - 0.010)
        one.finished(step(one, due), due + took_s)
        assert one.counters(0).late_frames == late


def test_a_late_frame_of_a_client_in_debt_is_not_laid_to_the_model() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    one.arrived(0, 2 * FRAME, 0.07)
    one.finished(step(one, 0.08), 0.1)
    one.finished(step(one, 0.16), 0.18)
    one.finished(step(one, 0.24), 0.33)
    counted = one.counters(0)
    assert (counted.late_frames, counted.late_in_debt, counted.debt_frames) == (2, 0, 0)


def test_what_a_session_left_behind_is_not_counted_for_the_next_one() -> None:
    one = scheduler(groups=1)
    one.join(0, now=0.0)
    batch = step(one, 0.08)
    one.leave(0)
    one.finished(batch, 1.0)
    one.join(0, now=1.0)
    one.finished(batch, 2.0)
    assert one.totals() == FrameCounts(frames=1, silent_frames=1, silence_samples=FRAME)


def run_call(one: FrameDeadline, slot: int, first_at: float, drift_ppm: float, ticks: int) -> None:
    """A client that sends each frame as one message, on a device that needs 10 ms for a step."""
    every_s = PERIOD_S / (1 + drift_ppm * 1e-6)
    now, sent = first_at, 0
    for _ in range(ticks):
        asked = one.next_batch(now)
        while not isinstance(asked, FrameBatch):
            assert asked is not None
            now = asked
            while (at := first_at + sent * every_s) <= now:
                one.arrived(slot, FRAME, at)
                sent += 1
            asked = one.next_batch(now)
        now += 0.010
        one.finished(asked, now)


@pytest.mark.parametrize("drift_ppm", [300, -300])
def test_long_messages_that_wander_off_change_the_group_instead_of_being_late(
    drift_ppm: float,
) -> None:
    one = scheduler(groups=2)
    one.join(0, now=0.0, arrives_at=0.07, every_s=PERIOD_S)
    run_call(one, 0, first_at=0.07, drift_ppm=drift_ppm, ticks=9000)
    counted = one.counters(0)
    assert counted.moves == pytest.approx(9000 * 0.08 * 300e-6 / 0.040, abs=1)
    assert counted.late_frames == counted.debt_frames == 0
    assert counted.silence_samples == counted.dropped_samples == 0
    assert counted.squeezed_samples == counted.stretched_samples == 0


def test_where_the_other_group_is_full_slip_has_to_do() -> None:
    one = scheduler(groups=2, rows=1)
    one.join(0, now=0.0, arrives_at=0.07, every_s=PERIOD_S)
    one.join(1, now=0.0)
    one.freeze(1)
    run_call(one, 0, first_at=0.07, drift_ppm=-300, ticks=3000)
    counted = one.counters(0)
    assert counted.moves == counted.silence_samples == 0
    assert counted.stretched_samples > 0
