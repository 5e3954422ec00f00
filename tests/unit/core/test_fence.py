"""Fences: late output is told from current output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.fence import SESSION_LANE, Epochs, Fence, Lane

LANE = Lane("resp_1")


def test_what_was_sent_under_the_current_fence_is_current() -> None:
    epochs = Epochs("s")
    fence = epochs.open(LANE)
    assert fence == Fence("s", LANE, 0)
    assert epochs.is_current(fence)
    assert epochs.fence(LANE) == fence


def test_an_advance_makes_stale_what_is_out_there_on_that_lane_alone() -> None:
    epochs = Epochs("s")
    old, other = epochs.open(LANE), epochs.open(SESSION_LANE)
    new = epochs.advance(LANE)
    assert not epochs.is_current(old)
    assert epochs.is_current(new)
    assert epochs.is_current(other)


def test_a_lane_is_opened_in_the_epoch_that_the_session_has_come_to() -> None:
    epochs = Epochs("s")
    epochs.open(LANE)
    epochs.advance(LANE)
    epochs.close(LANE)
    assert epochs.number == 1
    assert epochs.open(Lane("resp_2")) == Fence("s", Lane("resp_2"), 1)
    assert epochs.open(LANE) == Fence("s", LANE, 1)


def test_of_a_closed_lane_nothing_is_current() -> None:
    epochs = Epochs("s")
    fence = epochs.open(LANE)
    epochs.close(LANE)
    assert not epochs.is_open(LANE)
    assert not epochs.is_current(fence)


def test_closing_a_lane_that_was_never_open_is_nothing() -> None:
    epochs = Epochs("s")
    epochs.close(LANE)
    assert not epochs.is_open(LANE)


def test_opening_an_open_lane_leaves_its_epoch() -> None:
    epochs = Epochs("s")
    epochs.open(LANE)
    advanced = epochs.advance(LANE)
    assert epochs.open(LANE) == advanced


def test_another_sessions_fence_is_never_current() -> None:
    epochs = Epochs("s")
    epochs.open(LANE)
    assert not epochs.is_current(Fence("t", LANE, 0))


def test_a_lane_that_is_not_open_has_no_fence() -> None:
    with pytest.raises(KeyError):
        Epochs("s").fence(LANE)


@given(st.lists(st.sampled_from(["advance", "close"]), max_size=20))
def test_at_most_the_newest_fence_of_a_lane_is_current(moves: list[str]) -> None:
    epochs = Epochs("s")
    seen = [epochs.open(LANE)]
    for move in moves:
        if move == "close" or not epochs.is_open(LANE):
            epochs.close(LANE)
        else:
            seen.append(epochs.advance(LANE))
    current = [fence for fence in seen if epochs.is_current(fence)]
    assert current == (seen[-1:] if epochs.is_open(LANE) else [])
