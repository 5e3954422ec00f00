from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.clients.reconnect.policy import Backoff, ReconnectPolicy

POLICY = ReconnectPolicy(give_up_s=100, first_wait_s=0.2, longest_wait_s=5)


@given(seed=st.integers(0, 1000))
def test_waits_double_up_to_a_bound_and_are_never_all_alike(seed: int) -> None:
    backoff = Backoff(POLICY, random.Random(seed), now=50.0)
    for attempt in range(12):
        longest = min(5.0, 0.2 * 2**attempt)
        wait = backoff.next_wait(50.0)
        assert wait is not None
        assert (longest / 2 if attempt else 0) <= wait <= longest
        assert backoff.attempts == attempt + 1


def test_it_gives_up_in_the_end_and_never_waits_past_it() -> None:
    backoff = Backoff(POLICY, random.Random(1), now=0.0)
    assert backoff.next_wait(99.9, at_least_s=30) == pytest.approx(0.1)
    assert backoff.next_wait(100.0) is None


def test_a_server_that_asks_for_more_time_gets_it() -> None:
    assert Backoff(POLICY, random.Random(1), now=0.0).next_wait(0.0, at_least_s=7) == 7


def test_a_very_long_outage_overflows_nothing() -> None:
    backoff = Backoff(POLICY, random.Random(1), now=0.0)
    backoff.attempts = 5000
    assert backoff.next_wait(0.0) is not None


@pytest.mark.parametrize("name", ["silence_s", "give_up_s", "first_wait_s", "kept_bytes"])
def test_a_number_that_makes_no_sense_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0, it must be above 0"):
        ReconnectPolicy(**{name: 0})
