from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.transport.in_order import Awaited, InOrder

JOBS = ("a", "b")


def test_what_comes_behind_an_awaited_payload_waits_and_other_jobs_do_not() -> None:
    order: InOrder[str] = InOrder()
    first = order.await_payload("a", "1 empty")
    assert order.pass_on("a", "2") == []
    assert order.pass_on("b", "other") == ["other"]
    assert order.came(first, ["1"]) == ["1", "2"]
    assert order.is_idle
    assert order.pass_on("a", "3") == ["3"]


def test_what_was_dropped_comes_to_nothing_and_the_next_of_its_name_is_another() -> None:
    order: InOrder[str] = InOrder()
    first = order.await_payload("a", "1 empty")
    order.pass_on("a", "2")
    assert order.drop("a") == ["1 empty", "2"]
    assert first.dropped
    assert order.drop("a") == []
    second = order.await_payload("a", "3 empty")
    assert order.came(first, ["1"]) == []
    assert order.came(second, ["3"]) == ["3"]


def test_all_can_be_dropped() -> None:
    order: InOrder[str] = InOrder()
    awaited = [order.await_payload(job, "empty") for job in JOBS]
    order.drop_all()
    assert order.is_idle
    assert all(each.dropped for each in awaited)


@given(st.lists(st.tuples(st.sampled_from(JOBS), st.booleans()), max_size=20), st.randoms())
def test_each_job_hears_all_of_it_in_its_order_whatever_is_read_first(
    sent: list[tuple[str, bool]], chance: st.DataObject
) -> None:
    order: InOrder[int] = InOrder()
    got: list[int] = []
    awaited: list[tuple[Awaited[int], int]] = []
    for number, (job, is_large) in enumerate(sent):
        if is_large:
            awaited.append((order.await_payload(job, -1), number))
        else:
            got += order.pass_on(job, number)
    chance.shuffle(awaited)  # type: ignore[attr-defined]
    for each, number in awaited:
        got += order.came(each, [number])
    assert order.is_idle
    for job in JOBS:
        of_job = [number for number, (its, _) in enumerate(sent) if its == job]
        assert [number for number in got if sent[number][0] == job] == of_job


def test_nothing_is_awaited_twice() -> None:
    order: InOrder[str] = InOrder()
    awaited = order.await_payload("a", "")
    order.came(awaited, [])
    with pytest.raises(KeyError):
        order.came(awaited, [])
