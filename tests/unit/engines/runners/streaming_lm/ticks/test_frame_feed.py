from __future__ import annotations

from itertools import pairwise

import pytest

from duologue.engines.frame_counts import FrameCounts
from duologue.engines.runners.streaming_lm.ticks.frame_feed import (
    Cut,
    Feed,
    FeedLimits,
)

LIMITS = FeedLimits()
FRAME = LIMITS.frame_samples
PERIOD_S = LIMITS.period_s
MOST = FRAME + LIMITS.debt_samples


def feed(limits: FeedLimits = LIMITS) -> Feed:
    return Feed(slot=3, stay=9, limits=limits, longest_wait_s=0.05)


def call(
    one: Feed,
    ticks: int,
    message_samples: int,
    *,
    first_at: float = 0.0,
    drift_ppm: float = 0.0,
    first_tick: float = PERIOD_S,
) -> list[Cut]:
    """A client that sends messages in time by its own clock, and the cuts of so many ticks."""
    every_s = message_samples / LIMITS.rate_hz / (1 + drift_ppm * 1e-6)
    sent = 0
    cuts = []
    for tick in range(ticks):
        due = first_tick + tick * PERIOD_S
        while (at := first_at + (sent + 1) * every_s) <= due:
            assert one.arrived(message_samples, at) == 0
            sent += 1
        cuts.append(one.cut(due))
    return cuts


def test_a_frame_that_is_there_is_taken_whole() -> None:
    one = feed()
    assert one.arrived(FRAME, 0.9) == 0
    assert one.cut(1.0) == Cut(3, 9, 0, 0, FRAME, 0, False, 0.9, True)
    assert one.level_samples == 0


def test_nothing_is_silence_at_once_and_lateness_counts_from_the_tick() -> None:
    one = feed()
    assert one.cut(1.0) == Cut(3, 9, 0, 0, 0, FRAME, True, 1.0, False)
    assert one.counters == FrameCounts(frames=1, silent_frames=1, silence_samples=FRAME)


def test_silence_leads_when_speech_begins_and_follows_when_it_is_late() -> None:
    one = feed()
    one.arrived(700, 0.9)
    begun = one.cut(1.0)
    assert (begun.take, begun.silence, begun.leads) == (700, FRAME - 700, True)
    one.arrived(1000, 1.05)
    late = one.cut(1.08)
    assert (late.take, late.silence, late.leads) == (1000, FRAME - 1000, False)
    one.arrived(500, 1.1)
    again = one.cut(1.16)
    assert (again.take, again.silence, again.leads) == (500, FRAME - 500, True), "one gap, not two"


def test_what_comes_just_before_the_first_tick_waits_so_that_there_is_a_reserve() -> None:
    one = feed()
    one.arrived(480, 0.978)
    one.arrived(480, 0.998)
    assert one.cut(1.0).take == 480
    assert one.level_samples == 480


def test_a_few_missing_samples_are_stretched_over_and_more_are_silence() -> None:
    for missing, silence in [(38, 0), (39, 39)]:
        one = feed()
        one.arrived(FRAME, 0.9)
        one.cut(1.0)
        one.arrived(FRAME - missing, 1.05)
        cut = one.cut(1.08)
        assert (cut.take, cut.silence) == (FRAME - missing, silence)
        assert one.counters.stretched_samples == (0 if silence else missing)


def test_late_audio_beyond_the_debt_is_dropped_the_oldest_first() -> None:
    one = feed()
    assert one.arrived(MOST, 0.5) == 0
    assert one.arrived(100, 0.6) == 100
    assert one.level_samples == MOST
    assert one.arrived(3 * MOST, 0.7) == 3 * MOST
    assert one.counters.dropped_samples == 3 * MOST + 100
    assert one.cut(1.0).since == 0.7


def test_what_came_longer_ago_than_planned_is_in_debt() -> None:
    one = feed()
    one.arrived(2 * FRAME, 0.96)
    assert not one.cut(1.0).in_debt
    second = one.cut(1.08)
    assert (second.since, second.in_debt) == (0.96, True)
    assert one.counters.debt_frames == 1
    assert not one.cut(1.16).in_debt, "silence owes nothing"


def test_the_audio_of_ticks_that_were_left_out_goes_with_them() -> None:
    one = feed()
    one.arrived(FRAME, 0.96)
    one.cut(1.0)
    for number in (1, 2):
        one.arrived(FRAME, 0.96 + number * PERIOD_S)
    late = one.cut(1.16, skipped_ticks=1)
    assert (late.skip, late.take, late.in_debt) == (FRAME, FRAME, False)
    assert one.level_samples == 0
    assert one.counters.skipped_samples == FRAME


def test_what_had_no_room_while_ticks_were_left_out_is_not_laid_to_the_client() -> None:
    one = feed()
    one.arrived(FRAME, 0.95)
    one.cut(1.0)
    dropped = sum(one.arrived(FRAME, 0.95 + number * PERIOD_S) for number in range(1, 6))
    assert dropped == 2 * FRAME
    late = one.cut(1.4, skipped_ticks=4)
    assert (late.skip, late.take, one.level_samples) == (2 * FRAME, FRAME, 0)
    counted = one.counters
    assert (counted.dropped_samples, counted.skipped_samples) == (0, 4 * FRAME)
    assert counted.skipped_ticks == 4
    one.arrived(10 * FRAME, 1.45)
    one.cut(1.48)
    assert one.counters.dropped_samples == 7 * FRAME, "what is the client's fault stays so"


@pytest.mark.parametrize("message", [240, 480, FRAME])
@pytest.mark.parametrize("drift_ppm", [-300, -50, 50, 300])
def test_drift_is_absorbed_by_slip_without_a_gap_or_a_growing_lag(
    message: int, drift_ppm: float
) -> None:
    one = feed()
    cuts = call(one, 4_000, message, drift_ppm=drift_ppm, first_tick=PERIOD_S + 0.008)
    settled = cuts[10:]
    assert [cut for cut in settled if cut.silence] == []
    assert one.counters.dropped_samples == 0
    longest_s = LIMITS.reserve_s + message / LIMITS.rate_hz + 0.012
    for number, cut in enumerate(settled, 10):
        assert PERIOD_S * (number + 1) + 0.008 - cut.since <= longest_s


def test_a_client_in_time_is_never_slipped() -> None:
    one = feed()
    call(one, 1000, 480, first_tick=PERIOD_S + 0.008)
    assert one.counters.squeezed_samples == one.counters.stretched_samples == 0


def test_lag_after_a_burst_is_squeezed_away() -> None:
    one = feed()
    one.arrived(LIMITS.debt_samples, 0.0)
    cuts = call(one, 400, 480, first_tick=PERIOD_S + 0.008)
    assert one.level_samples <= 480 + LIMITS.reserve_s * LIMITS.rate_hz
    assert one.counters.dropped_samples == 0
    assert all(cut.take <= FRAME + LIMITS.max_slip_samples for cut in cuts)


def test_lag_that_hides_inside_long_messages_is_squeezed_away() -> None:
    one = feed()
    one.arrived(FRAME - 1, 0.0)
    call(one, 400, FRAME, first_tick=PERIOD_S + 0.008)
    assert one.level_samples == 0
    assert one.counters.squeezed_samples == FRAME - 1


def test_a_late_message_once_costs_silence_once() -> None:
    one = feed()
    call(one, 3, 480, first_tick=PERIOD_S + 0.008)
    silence = one.counters.silence_samples
    tick = 4 * PERIOD_S + 0.008
    one.arrived(1440, tick - 0.03)
    assert one.cut(tick).silence == 480
    one.arrived(480, tick + 0.001)
    for number in range(1, 40):
        one.arrived(FRAME, tick + number * PERIOD_S - 0.008)
        assert one.cut(tick + number * PERIOD_S).silence == 0
    assert one.counters.silence_samples - silence == 480


def test_many_tiny_messages_take_no_more_memory_than_their_milliseconds() -> None:
    one = feed()
    for number in range(MOST):
        one.arrived(1, number * 0.24 / MOST)
    assert len(one._marks) <= 241


def test_frames_are_numbered_without_a_gap() -> None:
    numbers = [cut.frame for cut in call(feed(), 50, 480)]
    assert all(after == before + 1 for before, after in pairwise(numbers))
