from __future__ import annotations

import random

import pytest

from bench.ratios import Took, interval


def test_a_ratio_is_taken_within_a_round() -> None:
    plain, ours = Took(), Took()
    for speed in (1.0, 2.0, 4.0):  # the machine slows down by as much as it likes
        plain.add(1.0 * speed, 0.9 * speed, 0.5 * speed)
        ours.add(1.1 * speed, 0.99 * speed, 0.6 * speed)
    row = ours.over(plain)
    assert (row["ratio"], row["ratio_min"], row["ratio_max"]) == (1.1, 1.1, 1.1)
    assert (row["ratio_device"], row["ratio_cpu"]) == (1.1, 1.2)
    assert (row["rounds"], row["p50_s"]) == (3, 2.2)


def test_what_was_slow_once_moves_no_median() -> None:
    plain, ours = Took(), Took()
    for number in range(20):
        plain.add(3.0 if number == 5 else 1.0, 1.0, 1.0)
        ours.add(3.0 if number == 9 else 1.0, 1.0, 1.0)
    row = ours.over(plain)
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == (1.0, 1.0, 1.0)
    assert row["ratio_max"] == 3.0


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (6, 0), (9, 1), (20, 5), (25, 7)])
def test_so_many_are_left_out_on_either_side(count: int, left_out: int) -> None:
    # As the tables of the sign test have it, two-sided, 5 %.
    assert interval([float(n) for n in range(count)]) == (left_out, count - 1 - left_out)


def test_it_holds_the_true_median_as_often_as_it_says() -> None:
    draw = random.Random(4)
    held = 0
    for _ in range(1_000):
        low, high = interval([draw.lognormvariate(0.0, 1.0) for _ in range(20)])
        held += low <= 1.0 <= high
    assert held >= 940
