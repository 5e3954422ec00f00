from __future__ import annotations

from priority import AHEAD, raised


def test_all_sessions_are_raised_alike_so_that_who_yields_still_does() -> None:
    assert raised("/autogroup-28 nice 0\n") == AHEAD
    assert raised("/autogroup-33 nice 10\n") == AHEAD + 10


def test_one_that_was_raised_stays_as_it_is() -> None:
    assert raised(f"/autogroup-28 nice {AHEAD}\n") == AHEAD
