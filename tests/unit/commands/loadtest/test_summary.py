from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.commands.loadtest.caller import CallerResult
from duologue.commands.loadtest.summary import spread, summarise, summary_lines


def test_a_good_test_is_clean() -> None:
    results = [CallerResult(connect_s=0.1, waits_s=[1.0, 2.0]), CallerResult(0.2, [3.0])]
    summary = summarise(results)
    assert summary.is_clean
    assert (summary.sessions, summary.connected) == (2, 2)
    assert summary.wait is not None
    assert (summary.wait.count, summary.wait.median, summary.wait.largest) == (3, 2.0, 3.0)


@pytest.mark.parametrize(
    "bad",
    [
        CallerResult(connect_s=None),
        CallerResult(connect_s=0.1, unanswered=1),
        CallerResult(connect_s=0.1, errors=["connection_lost: gone"]),
    ],
)
def test_one_bad_caller_makes_it_unclean(bad: CallerResult) -> None:
    assert not summarise([CallerResult(connect_s=0.1, waits_s=[1.0]), bad]).is_clean


def test_equal_errors_are_counted_by_caller() -> None:
    lost = CallerResult(errors=["lost", "lost", "other"])
    summary = summarise([lost, CallerResult(errors=["lost"])])
    assert summary.errors == (("lost", 2), ("other", 1))
    assert "error          2 x lost" in summary_lines(summary)


def test_gaps_and_lost_frames_are_added_up() -> None:
    summary = summarise([CallerResult(0.1, gap_s=0.5, dropped_frames=3), CallerResult(0.1)])
    assert (summary.gap_s, summary.sessions_with_gaps, summary.dropped_frames) == (0.5, 1, 3)
    assert "no answer was waited for" in "\n".join(summary_lines(summary))


@given(st.lists(st.floats(0, 100), min_size=1))
def test_a_distribution_is_in_order(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    assert min(values) <= found.median <= found.p90 <= found.p99 <= found.largest == max(values)
    assert found.count == len(values)


def test_of_nothing_there_is_no_distribution() -> None:
    assert spread([]) is None


def test_ranks_are_values_that_occurred() -> None:
    found = spread([float(number) for number in range(1, 101)])
    assert found is not None
    assert (found.median, found.p90, found.p99) == (50.0, 90.0, 99.0)
    assert str(found).startswith("median 50.000 s, p90 90.000 s")
