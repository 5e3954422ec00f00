"""The timer wheel, against a list of deadlines."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from duologue.core.wheel import FEW, TICK_S, TimerWheel
from tests.fakes.clock import FakeClock, FakeTimer

MEMBERS = st.integers(0, 5)


class Member:
    """Something with a deadline; does on time what a test asked for."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.fired: list[float] = []
        self.on_fire: Callable[[], None] | None = None

    def on_timer(self) -> None:
        self.fired.append(self.clock.now())
        if self.on_fire is not None:
            self.on_fire()


def make_wheel(
    start: float = 0.0, members: int = 3, few: int = FEW
) -> tuple[FakeClock, TimerWheel, list[Member]]:
    clock = FakeClock(start)
    wheel = TimerWheel(clock.call_at, few=few)
    return clock, wheel, [Member(clock) for _ in range(members)]


def test_a_member_fires_once_at_its_deadline_and_is_off_the_wheel() -> None:
    clock, wheel, (member, *_) = make_wheel()
    wheel.set(member, 1.0)
    clock.advance(0.999)
    assert member.fired == []
    clock.advance(5)
    assert member.fired == [1.0]
    assert len(wheel) == 0


def test_a_deadline_between_ticks_is_rounded_up() -> None:
    clock, wheel, (member, *_) = make_wheel()
    wheel.set(member, 0.0121)
    clock.advance(1)
    assert member.fired == [0.015]


def test_the_last_deadline_counts() -> None:
    clock, wheel, (member, *_) = make_wheel()
    for deadline in (1.0, 3.0, 2.0):
        wheel.set(member, deadline)
    clock.advance(5)
    assert member.fired == [2.0]


def test_none_takes_a_member_off() -> None:
    clock, wheel, (member, *_) = make_wheel()
    wheel.set(member, 1.0)
    wheel.set(member, None)
    clock.advance(5)
    assert member.fired == []
    assert len(wheel) == 0


def test_a_deadline_that_has_passed_fires_at_once() -> None:
    clock, wheel, (member, *_) = make_wheel(start=100.0)
    wheel.set(member, 50.0)
    clock.advance(0)
    assert member.fired == [100.0]


def test_a_later_deadline_set_while_firing_does_not_hide_anothers_earlier_one() -> None:
    clock, wheel, (first, second, _) = make_wheel()
    first.on_fire = lambda: wheel.set(first, 3600.0)
    wheel.set(first, 1.0)
    wheel.set(second, 2.0)
    clock.advance(10)
    assert second.fired == [2.0]


def test_a_member_that_another_takes_off_in_the_same_tick_does_not_fire() -> None:
    clock, wheel, members = make_wheel()
    for member in members:
        member.on_fire = lambda me=member: [wheel.set(m, None) for m in members if m is not me]
        wheel.set(member, 1.0)
    clock.advance(10)
    assert sum(len(member.fired) for member in members) == 1


def test_a_member_that_another_re_times_in_the_same_tick_fires_then() -> None:
    clock, wheel, members = make_wheel()

    def put_off(me: Member) -> None:
        for other in members:
            if other is not me and not other.fired:
                wheel.set(other, 2.0)

    for member in members:
        member.on_fire = lambda me=member: put_off(me)
        wheel.set(member, 1.0)
    clock.advance(10)
    assert sorted(time for member in members for time in member.fired) == [1.0, 2.0, 2.0]


def test_a_member_that_raises_does_not_stop_the_clock_of_others() -> None:
    clock, wheel, members = make_wheel()

    def crash() -> None:
        raise ValueError("broken")

    for member in members:
        wheel.set(member, 1.0)
    members[1].on_fire = crash
    with pytest.raises(ValueError, match="broken"):
        clock.advance(2)
    clock.advance(2)
    assert [len(member.fired) for member in members] == [1, 1, 1]


def test_one_loop_timer_serves_everybody() -> None:
    armed: list[float] = []
    clock = FakeClock()

    def call_at(when: float, callback: Callable[[], None]) -> FakeTimer:
        armed.append(when)
        return clock.call_at(when, callback)

    wheel = TimerWheel(call_at)
    for _ in range(50):
        wheel.set(Member(clock), 1.0)
    assert armed == [1.0]


def test_deadlines_that_come_and_go_leave_nothing_behind() -> None:
    clock, wheel, (member, other, _) = make_wheel()
    wheel.set(other, 1000.0)
    for _ in range(100):
        wheel.set(member, 3600.0)
        wheel.set(member, clock.now() + 0.5)
        clock.advance(1)
    # Nothing else tells: a tick that is kept twice costs memory alone.
    assert len(wheel._ticks) <= 2


def test_what_is_over_long_before_it_is_due_leaves_next_to_nothing() -> None:
    clock, wheel, _ = make_wheel()
    members = [Member(clock) for _ in range(10 * FEW)]
    for number, member in enumerate(members):
        wheel.set(member, 3600.0 + number)
    for member in members[1:]:
        wheel.set(member, None)
    assert len(wheel) == 1
    assert len(wheel._ticks) <= 2 * FEW
    assert len(wheel._buckets) == len(wheel._ticks)
    clock.advance(4000)
    assert members[0].fired == [3600.0]


@given(deadline=st.floats(0, 1e6))
@example(917.5400000000001)  # divided by the tick, a whole number
def test_no_deadline_ever_fires_early_nor_more_than_a_tick_late(deadline: float) -> None:
    clock, wheel, (member, *_) = make_wheel()
    wheel.set(member, deadline)
    clock.advance(deadline + 1)
    (fired,) = member.fired
    assert deadline <= fired <= deadline + TICK_S * 1.001


class WheelModel(RuleBasedStateMachine):
    """The wheel against a dictionary of deadlines, with members that re-time each other."""

    @initialize()
    def start(self) -> None:
        self.clock, self.wheel, self.members = make_wheel(members=6, few=1)
        self.due: dict[int, float] = {}
        self.plans: dict[int, tuple[int, float | None]] = {}
        for index, member in enumerate(self.members):
            member.on_fire = lambda index=index: self._on_fire(index)

    @rule(member=MEMBERS, delay=st.one_of(st.none(), st.floats(-1, 20)))
    def set_deadline(self, member: int, delay: float | None) -> None:
        self._set(member, delay)

    @rule(member=MEMBERS, other=MEMBERS, delay=st.one_of(st.none(), st.floats(-1, 20)))
    def plan_for_the_time_it_fires(self, member: int, other: int, delay: float | None) -> None:
        self.plans[member] = (other, delay)

    @rule(seconds=st.floats(0, 10))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        assert all(math.ceil(due / TICK_S) * TICK_S > self.clock.now() for due in self.due.values())

    @invariant()
    def it_holds_those_that_have_a_deadline(self) -> None:
        if hasattr(self, "wheel"):
            assert len(self.wheel) == len(self.due)
            buckets = self.wheel._buckets.values()
            assert self.wheel._empty == sum(not bucket for bucket in buckets)

    def _set(self, member: int, delay: float | None) -> None:
        deadline = None if delay is None else self.clock.now() + delay
        self.wheel.set(self.members[member], deadline)
        if deadline is None:
            self.due.pop(member, None)
        else:
            self.due[member] = deadline

    def _on_fire(self, member: int) -> None:
        assert self.due.pop(member) <= self.clock.now()
        plan = self.plans.pop(member, None)
        if plan is not None:
            self._set(*plan)


TestWheelModel = WheelModel.TestCase
TestWheelModel.settings = settings(max_examples=settings().max_examples // 4)
