from __future__ import annotations

import math

from duologue.sessions.lifetime import LEAVING_CHECK_S, Lifetime
from duologue.sessions.settings import SessionSettings

T = 100.0
SETTINGS = SessionSettings(
    max_duration_s=1000, expiry_warning_s=60, expiry_grace_s=30, stall_limit_s=10
)


def lifetime(tick_s: float | None = None, *, warns: bool = True) -> Lifetime:
    return Lifetime(SETTINGS, T, None if tick_s is None else round(tick_s * 1000), warns)


def test_the_client_is_warned_once_a_minute_before_the_end() -> None:
    life = lifetime()
    assert life.next_deadline() == T + 940
    assert not life.warning_due(T + 939)
    assert life.warning_due(T + 940)
    assert not life.warning_due(T + 941)
    assert life.next_deadline() == T + 1000


def test_who_cannot_be_warned_is_not() -> None:
    life = lifetime(warns=False)
    assert life.next_deadline() == T + 1000
    assert not life.warning_due(T + 2000)


def test_a_short_life_is_warned_at_its_beginning() -> None:
    settings = SETTINGS.model_copy(update={"max_duration_s": 5.0})
    assert Lifetime(settings, T, None, True).warning_due(T)


def test_without_an_answer_the_end_comes_at_the_limit() -> None:
    life = lifetime()
    assert not life.over(T + 999, answering=True)
    assert not life.leaving
    assert life.over(T + 1000, answering=False)


def test_an_answer_may_finish_within_the_grace_period() -> None:
    life = lifetime(warns=False)
    assert not life.over(T + 1000, answering=True)
    assert life.leaving
    assert life.next_deadline() == T + 1000 + LEAVING_CHECK_S
    assert not life.over(T + 1029.9, answering=True)
    assert life.next_deadline() == T + 1030
    assert life.over(T + 1030, answering=True)


def test_a_client_that_takes_nothing_stalls_unless_nobody_is_there() -> None:
    life = lifetime()
    life.waiting_since = T
    while not life.stalled(now := life.next_deadline()):
        assert now < T + 10
    assert now == T + 10
    life.detach(T + 10)
    assert life.detached
    life.waiting_since = T + 11  # it took some, and there is more
    assert not life.stalled(T + 500)
    life.attach(T + 500)
    assert not life.detached
    assert life.waiting_since is None


def test_nobody_stalls_while_this_process_stands_still() -> None:
    life = lifetime(warns=False)
    life.waiting_since = T
    assert not life.stalled(T + 0.5)
    assert not life.stalled(T + 12)
    assert T + 12 < life.next_deadline() < T + 13
    while not life.stalled(now := life.next_deadline()):
        assert now < T + 22
    assert now > T + 20


def test_beats_stop_while_nobody_is_there_and_go_on_where_they_stopped() -> None:
    life = lifetime(0.08)
    assert [life.beat(T + 0.08), life.beat(T + 0.1), life.beat(T + 0.16)] == [True, False, True]
    life.detach(T + 0.2)
    assert not life.beat(T + 50)
    assert life.next_deadline() == T + 940
    life.attach(T + 10.2)
    assert not life.beat(T + 10.23)
    assert life.beat(T + 10.2401)
    assert life.ticks == 3
    assert life.next_deadline() < T + 10.33


def test_without_beats_there_is_none() -> None:
    assert not lifetime().beat(math.inf)


def test_a_take_over_moves_no_beats() -> None:
    life = lifetime(1.0)
    life.attach(T + 0.5)
    assert life.beat(T + 1.0)
