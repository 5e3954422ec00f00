from __future__ import annotations

from duologue.engines.arbiter.slice_costs import ENOUGH, KEPT, SHAPES, SliceCosts


def test_before_anything_is_known_all_cost_nothing() -> None:
    assert SliceCosts(0.040).of("small") == 0.0


def test_a_cost_is_a_high_percentile() -> None:
    costs = SliceCosts(0.040)
    for number in range(1, 41):
        costs.add("small", number / 1000)
    assert costs.of("small") == 0.039


def test_a_new_shape_costs_as_much_as_the_costliest() -> None:
    costs = SliceCosts(0.040)
    costs.add("small", 0.001)
    costs.add("large", 0.030)
    assert costs.of("other") == 0.030
    assert costs.of("small") == 0.001


def test_what_was_long_ago_is_forgotten() -> None:
    costs = SliceCosts(0.040)
    costs.add("small", 1.0)
    for _ in range(KEPT):
        costs.add("small", 0.001)
    assert costs.of("small") == 0.001


def test_shapes_are_a_number() -> None:
    costs = SliceCosts(0.040)
    costs.add("first", 1.0)
    for number in range(SHAPES):
        costs.add(number, 0.001)
    assert costs.of("first") == 0.001


def test_one_that_was_long_by_chance_is_not_too_long() -> None:
    costs = SliceCosts(0.040)
    for took_s in (1.0, 1.0, 0.040, 1.0, 1.0):
        costs.add("small", took_s)
    assert not costs.is_too_long("small")


def test_too_long_is_what_is_so_again_and_again_even_where_it_was_forgotten() -> None:
    costs = SliceCosts(0.040)
    for _ in range(ENOUGH - 1):
        costs.add("large", 0.1)
        costs.forget_longest("large")
    assert not costs.is_too_long("large")
    costs.add("large", 0.1)
    assert costs.is_too_long("large")
    assert not costs.is_too_long("small")


def test_the_longest_can_be_forgotten_until_nothing_is_known() -> None:
    costs = SliceCosts(0.040)
    costs.add("small", 0.001)
    costs.add("small", 1.0)
    costs.forget_longest("small")
    assert costs.of("small") == 0.001
    costs.forget_longest("unknown")
    assert costs.of("small") == 0.0
