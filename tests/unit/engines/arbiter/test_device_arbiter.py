"""The rules one by one; that they hold in any order is shown in tests/state."""

from __future__ import annotations

import math

import pytest

from duologue.engines.arbiter.device_arbiter import (
    FORGOTTEN_S,
    RETRY_S,
    Beat,
    DeviceArbiter,
    Grant,
    Seat,
    Wait,
)

CALLS, PICTURES, FILMS = 0, 1, 2
PERIOD_S = 0.080
NOW = 50.0


def arbiter(beat: Beat | None = None, budget_bytes: int = 0) -> DeviceArbiter:
    return DeviceArbiter(
        PERIOD_S,
        budget_bytes,
        {
            CALLS: Seat(beat=beat or Beat()),
            PICTURES: Seat(is_batch=True),
            FILMS: Seat(is_batch=True),
        },
    )


def due_in(wait_s: float, step_s: float = 0.02, grace_s: float = 0.04) -> Beat:
    return Beat(NOW + wait_s, NOW + wait_s + grace_s, step_s)


class TestTime:
    def test_a_slice_is_half_the_time_that_is_left_over(self) -> None:
        answer = arbiter(due_in(0.04)).ask(PICTURES, 0.01, NOW)
        assert isinstance(answer, Grant)
        assert answer.slice_s == pytest.approx((0.08 - 0.02) / 2)

    def test_a_slice_that_is_longer_waits_for_the_end_of_the_step_that_is_due(self) -> None:
        answer = arbiter(due_in(0.01)).ask(PICTURES, 0.03, NOW)
        assert answer == Wait(NOW + 0.01 + 0.02)

    def test_nothing_begins_while_a_step_runs(self) -> None:
        beat = Beat(busy_until=NOW + 0.01)
        assert arbiter(beat).ask(PICTURES, 0.001, NOW) == Wait(NOW + 0.01)

    def test_a_step_that_takes_longer_than_it_said_is_waited_for(self) -> None:
        beat = Beat(busy_until=NOW - 0.01)
        assert arbiter(beat).ask(PICTURES, 0.001, NOW) == Wait(NOW + RETRY_S)

    def test_without_calls_a_slice_is_short_enough_for_one_that_comes(self) -> None:
        assert arbiter().ask(PICTURES, 0.001, NOW) == Grant(PERIOD_S / 2)

    def test_a_beat_that_never_came_is_forgotten_a_period_after_its_deadline(self) -> None:
        shared = arbiter(due_in(-0.1, grace_s=0.04))
        assert isinstance(shared.ask(PICTURES, 0.001, NOW), Wait)
        assert shared.ask(PICTURES, 0.001, NOW + 0.03) == Grant(PERIOD_S / 2)

    def test_steps_of_several_workers_add_up(self) -> None:
        shared = arbiter(due_in(0.04))
        shared.seats[7] = Seat(beat=due_in(0.03))
        assert shared.slack_s(NOW) == pytest.approx(min(0.07 - 0.02, 0.08 - 0.02 - 0.02))

    def test_one_slice_runs_at_a_time(self) -> None:
        shared = arbiter()
        shared.ask(PICTURES, 0.01, NOW)
        assert shared.ask(FILMS, 0.01, NOW) == Wait(NOW + PERIOD_S / 2)
        shared.ended(PICTURES, NOW + 0.02)
        assert isinstance(shared.ask(FILMS, 0.01, NOW + 0.02), Grant)

    def test_who_has_had_less_goes_first(self) -> None:
        shared = arbiter()
        shared.ask(PICTURES, 0.01, NOW)
        shared.ask(FILMS, 0.01, NOW)
        shared.ended(PICTURES, NOW + 0.02)
        assert shared.ask(PICTURES, 0.01, NOW + 0.02) == Wait(NOW + 0.02 + RETRY_S)
        assert isinstance(shared.ask(FILMS, 0.01, NOW + 0.021), Grant)

    def test_who_waits_in_vain_for_a_longer_slice_is_passed(self) -> None:
        shared = arbiter()
        shared.ask(PICTURES, 0.001, NOW)
        shared.ask(FILMS, 0.030, NOW)
        shared.ended(PICTURES, NOW)
        shared.seats[CALLS].beat = due_in(0.02)
        assert isinstance(shared.ask(PICTURES, 0.001, NOW), Grant)

    def test_who_asks_no_more_is_not_waited_for(self) -> None:
        shared = arbiter()
        shared.ask(PICTURES, 0.01, NOW)
        shared.ask(FILMS, 0.01, NOW)
        shared.ended(PICTURES, NOW + 0.02)
        later = NOW + PERIOD_S / 2 + FORGOTTEN_S + 0.001
        assert isinstance(shared.ask(PICTURES, 0.01, later), Grant)

    def test_a_turn_that_is_not_wanted_any_more_is_others(self) -> None:
        shared = arbiter()
        shared.ask(PICTURES, 0.01, NOW)
        shared.ask(FILMS, 0.01, NOW)
        shared.ended(PICTURES, NOW + 0.02)
        shared.withdraw(FILMS)
        assert isinstance(shared.ask(PICTURES, 0.01, NOW + 0.02), Grant)

    def test_nobody_is_owed_for_the_time_that_he_was_away(self) -> None:
        shared = arbiter()
        shared.seats[PICTURES].used_s = 100.0
        shared.ask(PICTURES, 0.01, NOW)
        shared.ask(FILMS, 0.01, NOW)
        assert shared.seats[FILMS].used_s == 100.0

    def test_where_nobody_is_to_be_in_time_all_run_as_they_like(self) -> None:
        shared = DeviceArbiter(math.inf, 0, {1: Seat(is_batch=True), 2: Seat(is_batch=True)})
        assert shared.ask(1, 5.0, NOW) == Grant(math.inf)
        assert shared.ask(2, 5.0, NOW) == Grant(math.inf)


class TestBytes:
    def test_jobs_have_what_is_left_by_models(self) -> None:
        shared = arbiter(budget_bytes=100)
        shared.seats[CALLS].resident_bytes = 30
        assert shared.room_bytes() == 70
        assert shared.take_bytes(PICTURES, 70, NOW)
        assert not shared.take_bytes(FILMS, 1, NOW)
        shared.give_bytes(PICTURES, 70)
        assert shared.take_bytes(FILMS, 1, NOW)
        assert shared.held_bytes == 31

    def test_a_large_job_is_not_passed_by_small_ones(self) -> None:
        shared = arbiter(budget_bytes=100)
        assert shared.take_bytes(PICTURES, 50, NOW)
        assert not shared.take_bytes(FILMS, 60, NOW)
        assert not shared.take_bytes(PICTURES, 10, NOW + 0.1)
        shared.give_bytes(PICTURES, 50)
        assert shared.take_bytes(FILMS, 60, NOW + 0.2)
        assert shared.take_bytes(PICTURES, 10, NOW + 0.2)

    def test_who_wants_no_more_is_not_waited_for(self) -> None:
        shared = arbiter(budget_bytes=100)
        assert shared.take_bytes(PICTURES, 50, NOW)
        assert not shared.take_bytes(FILMS, 60, NOW)
        assert shared.take_bytes(PICTURES, 10, NOW + FORGOTTEN_S + 0.001)

    def test_without_a_budget_there_is_room_for_all(self) -> None:
        shared = arbiter()
        assert shared.room_bytes() == math.inf
        assert shared.take_bytes(PICTURES, 1 << 60, NOW)
