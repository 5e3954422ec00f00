from __future__ import annotations

import threading

import pytest

from duologue.engines.runners.diffusion.sliced_work import SlicedWork, WorkAbandonedError


def test_work_goes_on_only_when_it_is_let() -> None:
    sliced = SlicedWork("test")
    done: list[int] = []

    def work() -> None:
        for number in range(3):
            done.append(number)
            sliced.pause()

    sliced.begin(work)
    assert done == []
    for expected in ([0], [0, 1], [0, 1, 2]):
        assert not sliced.advance()
        assert done == expected
    assert sliced.advance()
    assert not sliced.is_working


def test_all_work_has_the_same_thread() -> None:
    sliced = SlicedWork("test")
    threads: set[int] = set()
    for _ in range(3):
        sliced.begin(lambda: threads.add(threading.get_ident()))
        assert sliced.advance()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_abandoned_work_unwinds_and_makes_room() -> None:
    sliced = SlicedWork("test")
    seen: list[str] = []

    def work() -> None:
        try:
            sliced.pause()
            seen.append("went on")
        except WorkAbandonedError:
            seen.append("unwound")
            raise

    sliced.begin(work)
    sliced.advance()
    sliced.abandon()
    assert seen == ["unwound"]
    assert not sliced.is_working
    sliced.begin(lambda: seen.append("next"))
    assert sliced.advance()
    assert seen == ["unwound", "next"]


def test_work_that_never_began_is_forgotten() -> None:
    sliced = SlicedWork("test")
    sliced.begin(lambda: pytest.fail("it ran"))
    sliced.abandon()
    assert not sliced.is_working


def test_an_error_of_the_work_is_the_owners_to_see() -> None:
    sliced = SlicedWork("test")

    def work() -> None:
        sliced.pause()
        raise LookupError("no such thing")

    sliced.begin(work)
    assert not sliced.advance()
    with pytest.raises(LookupError, match="no such thing"):
        sliced.advance()
    assert not sliced.is_working


def test_its_thread_ends_when_it_is_closed() -> None:
    sliced = SlicedWork("closing")
    sliced.begin(lambda: None)
    assert sliced.advance()
    sliced.close()
    assert not any(thread.name.startswith("closing") for thread in threading.enumerate())
