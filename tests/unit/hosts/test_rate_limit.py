from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.hosts.rate_limit import RateLimit


def test_a_minutes_worth_may_come_at_once_and_then_as_the_minute_passes() -> None:
    limit = RateLimit(6, now=100.0)
    assert [limit.take(100.0) for _ in range(6)] == [0.0] * 6
    assert limit.take(100.0) == 10.0
    assert limit.take(104.0) == pytest.approx(6.0)
    assert limit.take(110.001) == 0.0
    assert limit.take(110.001) == pytest.approx(10.0, abs=0.01)


def test_a_long_rest_saves_no_more_than_a_minutes_worth() -> None:
    limit = RateLimit(3, now=0.0)
    assert [limit.take(10_000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]


@given(st.integers(1, 600), st.lists(st.floats(0, 30), max_size=60))
def test_who_waits_as_told_is_let_in(per_minute: int, pauses: list[float]) -> None:
    limit, now = RateLimit(per_minute, now=0.0), 0.0
    for pause in pauses:
        now += pause
        wait_s = limit.take(now)
        if wait_s:
            now += wait_s + 1e-6
            assert limit.take(now) == 0.0
