from __future__ import annotations

from duologue.engines.runners.diffusion.slicing import SliceBudget


def test_a_slice_ends_at_the_first_point_after_its_time() -> None:
    budget = SliceBudget(0.05)
    budget.begin(10.0)
    assert not budget.is_used_up(10.02)
    assert not budget.is_used_up(10.04)
    assert budget.is_used_up(10.06)


def test_some_points_end_it_in_any_case() -> None:
    budget = SliceBudget(60.0)
    budget.begin(10.0)
    assert budget.is_used_up(10.001, must_end=True)


def test_the_longest_part_is_that_of_the_slice_up_to_its_end() -> None:
    budget = SliceBudget(0.05)
    budget.begin(0.0)
    budget.is_used_up(0.01)
    budget.is_used_up(0.04)
    budget.end(0.05)
    assert abs(budget.longest_part_s - 0.03) < 1e-9
    budget.begin(100.0)
    budget.is_used_up(100.01)
    budget.end(100.03)
    assert abs(budget.longest_part_s - 0.02) < 1e-9


def test_where_the_device_is_behind_a_part_is_as_long_as_what_is_left_of_it() -> None:
    budget = SliceBudget(0.05, ahead=1)
    budget.begin(0.0)
    budget.is_used_up(0.01)
    assert abs(budget.longest_part_s - 0.01) < 1e-9
    budget.is_used_up(0.03)
    assert abs(budget.longest_part_s - 0.03) < 1e-9, "what was told at 0.0 and at 0.01"
    budget.is_used_up(0.04)
    budget.end(0.07)
    assert abs(budget.longest_part_s - 0.04) < 1e-9, "from 0.03, where it could have been ended"


def test_what_was_not_spent_on_the_device_does_not_count() -> None:
    budget = SliceBudget(0.05, ahead=1)
    budget.begin(0.0)
    budget.is_used_up(0.01)
    budget.leave_out(100.0)
    assert not budget.is_used_up(100.02)
    budget.leave_out(1.0)
    assert budget.is_used_up(101.06)
    assert abs(budget.longest_part_s - 0.05) < 1e-9
