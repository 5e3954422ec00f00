from __future__ import annotations

from duologue.engines.pools.held_work import HeldWork


def test_every_answer_is_awaited_also_of_an_order_that_was_given_up() -> None:
    held = HeldWork()
    assert held.hold(["a", "b"]) == ["a", "b"]
    held.on_held("b")
    assert (held.wanted, held.late) == (True, ["a"])
    assert held.release() == ["a", "b"]
    assert not held.wanted
    held.hold(["a"])
    held.on_held("a")
    assert held.late == ["a"], "that was the answer to the first order"
    held.on_held("a")
    assert held.late == []


def test_who_has_lost_its_process_owes_nothing_and_is_told_nothing() -> None:
    held = HeldWork()
    held.hold(["a", "b"])
    held.on_lost("a")
    held.on_held("a")
    assert held.late == ["b"]
    assert held.release() == ["b"]


def test_what_is_not_held_is_not_released() -> None:
    held = HeldWork()
    assert held.release() == []
