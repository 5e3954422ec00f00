from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.core.errors import CapacityError
from duologue.hosts.call_queue import CallQueue
from duologue.telemetry import Counter, Family


class Member:
    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def on_position(self, position: int, waiting: int) -> None:
        self.told.append((position, waiting))


def test_who_comes_first_is_first_and_everybody_is_told_when_that_changes() -> None:
    outcomes = Family(Counter, ("admitted", "gave_up"))
    queue = CallQueue(3, outcomes)
    first, second, third = members = [Member() for _ in range(3)]
    for member in members:
        queue.join(member)
    assert [member.told for member in members] == [[(1, 1)], [(2, 2)], [(3, 3)]]
    queue.leave(second, "gave_up")
    queue.leave(first, "admitted")
    assert third.told == [(3, 3), (2, 2), (1, 1)]
    queue.leave(first, "admitted")
    with pytest.raises(CapacityError, match="1 calls wait") as overtaking:
        queue.check_turn()
    assert overtaking.value.retry_after_s > 0
    queue.leave(third, "gave_up")
    queue.check_turn()
    assert [outcomes[each].value for each in ("admitted", "gave_up")] == [1, 2]


def test_past_the_limit_nobody_may_wait_and_is_told_when_to_come_back() -> None:
    for capacity in (0, 1):
        queue = CallQueue(capacity)
        for _ in range(capacity):
            queue.join(Member())
        with pytest.raises(CapacityError, match=f"the limit is {capacity}") as refused:
            queue.join(Member())
        assert refused.value.retry_after_s > 0
        assert len(queue) == capacity
        assert queue.fill == capacity


class AnyOrder(RuleBasedStateMachine):
    """Whoever comes and goes: the latest that each was told is its place."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = CallQueue(4)
        self.here: list[Member] = []

    @rule()
    def comes(self) -> None:
        member = Member()
        if len(self.here) < 4:
            self.queue.join(member)
            self.here.append(member)
        else:
            with pytest.raises(CapacityError):
                self.queue.join(member)

    @rule(which=st.integers(0, 3))
    def goes(self, which: int) -> None:
        if self.here:
            member = self.here.pop(which % len(self.here))
            self.queue.leave(member, "gave_up")

    @invariant()
    def everybody_knows_his_place(self) -> None:
        assert [member.told[-1][0] for member in self.here] == [*range(1, len(self.here) + 1)]
        assert len(self.queue) == len(self.here)


TestAnyOrder = AnyOrder.TestCase
