from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.telephony.reorder import MAX_HELD, RESTART, Reorder


def played(numbers: list[int]) -> list[int]:
    order = Reorder()
    return [frame[0] for number in numbers for frame in order.put(number, bytes([number]))]


def test_frames_in_their_turn_wait_for_nothing() -> None:
    order = Reorder()
    assert [order.put(number, b"x") for number in (7, 8, 9)] == [[b"x"]] * 3


def test_two_that_changed_places_are_put_right() -> None:
    assert played([1, 3, 2, 4]) == [1, 2, 3, 4]


def test_one_that_is_lost_is_not_waited_for_long() -> None:
    order = Reorder()
    order.put(1, b"1")
    for number in range(3, 3 + MAX_HELD):
        assert order.put(number, b"x") == []
    assert order.put(3 + MAX_HELD, b"x") == [b"x"] * (MAX_HELD + 1)
    assert order.put(2, b"late") == []
    assert order.put(3 + MAX_HELD, b"twice") == []


def test_who_counts_anew_is_followed() -> None:
    order = Reorder()
    order.put(RESTART + 10, b"x")
    assert order.put(5, b"y") == [b"y"]
    assert order.put(6, b"z") == [b"z"]


@given(st.permutations(range(8)))
def test_nothing_is_played_twice_or_out_of_order(numbers: list[int]) -> None:
    heard = played(numbers)
    assert heard == sorted(set(heard))
