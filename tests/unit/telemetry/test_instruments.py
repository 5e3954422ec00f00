from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.telemetry.instruments import OTHER, Counter, Family, Gauge, Grid, Histogram


def test_a_counter_adds_up_and_a_gauge_follows() -> None:
    counter, gauge = Counter(), Gauge()
    counter.inc()
    counter.inc(3)
    gauge.set(5)
    gauge.inc(-2)
    assert (counter.value, gauge.value) == (4, 3)


def test_a_value_on_an_edge_belongs_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.1):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.sum == 7.1


def test_quantiles_are_the_edges_that_enough_values_stay_below() -> None:
    histogram = Histogram((1.0, 2.0))
    assert histogram.quantile(0.5) is None
    for value in (0.5, 1.5, 1.6, 9.0):
        histogram.observe(value)
    assert histogram.quantile(0.25) == 1.0
    assert histogram.quantile(0.5) == 2.0
    assert histogram.quantile(0.9) == float("inf")


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_an_upper_bound(values: list[float], share: float) -> None:
    histogram = Histogram((0.5, 1.0, 5.0))
    for value in values:
        histogram.observe(value)
    bound = histogram.quantile(share)
    assert bound is not None
    assert sum(value <= bound for value in values) >= share * len(values)


def test_a_family_has_all_its_members_from_the_start() -> None:
    family = Family(Counter, ("tts", "asr"))
    assert [value for value, _ in family] == ["asr", OTHER, "tts"]


def test_a_value_outside_the_closed_set_counts_as_other_and_fails_nothing() -> None:
    family = Family(Counter, ("asr",))
    family["asr"].inc()
    family["session_4711"].inc()
    assert {value: member.value for value, member in family} == {"asr": 1, OTHER: 1}


def test_a_grid_has_every_pair_from_the_start_and_no_other() -> None:
    grid = Grid(Counter, ("a", "b"), ("x",))
    grid["a", "x"].inc()
    grid["a", "new"].inc()
    grid["new", "x"].inc()
    grid["new", "new"].inc()
    counted = {pair: counter.value for pair, counter in grid}
    assert len(counted) == 6
    assert counted["a", "x"] == 1
    assert counted["a", OTHER] == 1
    assert counted[OTHER, "x"] == 1
    assert counted[OTHER, OTHER] == 1
