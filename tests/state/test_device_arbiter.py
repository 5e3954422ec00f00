"""Is there an order of events in which a frame is late for a picture, or a picture never comes?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.engines.arbiter.device_arbiter import Beat, DeviceArbiter, Grant, Seat

pytestmark = pytest.mark.timeout(120)

PERIOD_S = 0.080
PATIENCE_S = 40 * PERIOD_S
BUDGET = 1000
RESIDENT = 200


@dataclass
class Calls:
    """A realtime worker, which steps once a period and never waits for leave."""

    due: float
    step_s: float
    grace_s: float
    ends_at: float = 0.0

    def beat(self) -> Beat:
        return Beat(self.due, self.due + self.grace_s, self.step_s, self.ends_at)


@dataclass
class Pictures:
    """A batch worker, which asks when it was told to."""

    cost_s: float = 0.0
    asks_at: float = math.inf
    ends_at: float = math.inf
    since: float = math.inf
    held_bytes: int = 0


class SharedDeviceMachine(RuleBasedStateMachine):
    """Workers that keep what they say: no step and no slice takes longer than was announced."""

    @initialize(
        calls=st.integers(0, 2),
        pictures=st.integers(1, 3),
        load=st.floats(0.01, 0.4),
        apart=st.booleans(),
    )
    def start(self, calls: int, pictures: int, load: float, *, apart: bool) -> None:
        self.now = 100.0
        self.late: list[tuple[float, float]] = []
        # Both at once must be done in the time that one has alone.
        step_s = load * PERIOD_S / (1 if apart else 2)
        shift_s = PERIOD_S / 2 if apart else 0.0
        self.calls = {
            number: Calls(self.now + number * shift_s, step_s, PERIOD_S / 2)
            for number in range(calls)
        }
        self.pictures = {number: Pictures() for number in range(10, 10 + pictures)}
        self.best_s = 0.9 * (PERIOD_S - 2 * step_s) / 2
        seats = {number: Seat() for number in self.calls}
        seats |= {number: Seat(is_batch=True) for number in self.pictures}
        self.arbiter = DeviceArbiter(PERIOD_S if calls else math.inf, BUDGET, seats)
        self.arbiter.seats[10].resident_bytes = RESIDENT
        self._say()

    # What happens

    @rule(which=st.integers(0, 2), share=st.floats(0.01, 1.0))
    def pictures_are_asked_for(self, which: int, share: float) -> None:
        each = self.pictures.get(10 + which)
        if each is not None and each.since == each.ends_at == math.inf:
            each.cost_s = share * self.best_s
            each.asks_at = each.since = self.now

    @rule(which=st.integers(0, 2))
    def nobody_wants_them_any_more(self, which: int) -> None:
        each = self.pictures.get(10 + which)
        if each is not None and each.ends_at == math.inf:
            each.asks_at = each.since = math.inf
            self.arbiter.withdraw(10 + which)

    @rule(which=st.integers(0, 2))
    def a_worker_dies_and_comes_back(self, which: int) -> None:
        if 10 + which in self.pictures:
            self.pictures[10 + which] = Pictures()
            self.arbiter.seats[10 + which] = Seat(is_batch=True)

    @rule(which=st.integers(0, 2), size=st.integers(1, BUDGET))
    def a_job_needs_memory(self, which: int, size: int) -> None:
        number = 10 + which
        if number not in self.pictures or size > self.arbiter.room_bytes():
            return
        before = self.arbiter.held_bytes
        if self.arbiter.take_bytes(number, size, self.now):
            self.pictures[number].held_bytes += size
            assert self.arbiter.held_bytes == before + size

    @rule(which=st.integers(0, 2))
    def its_jobs_end(self, which: int) -> None:
        number = 10 + which
        if number in self.pictures:
            self.arbiter.give_bytes(number, self.pictures[number].held_bytes)
            self.pictures[number].held_bytes = 0

    @precondition(lambda self: self.calls)
    @rule()
    def nobody_calls_for_a_while(self) -> None:
        for each in self.calls.values():
            if not each.ends_at:
                each.due += 5 * PERIOD_S
        self._say()

    @rule(periods=st.floats(0.01, 60))
    def time_passes(self, periods: float) -> None:
        until = self.now + periods * PERIOD_S
        while (when := self._next_event()) <= until:
            self.now = max(self.now, when)
            self._happen()
            self._say()
        self.now = until

    # The promises

    @invariant()
    def no_frame_is_late(self) -> None:
        assert getattr(self, "late", []) == []

    @invariant()
    def whoever_waits_gets_a_turn(self) -> None:
        for each in getattr(self, "pictures", {}).values():
            assert each.since == math.inf or self.now - each.since < PATIENCE_S

    @invariant()
    def memory_is_never_more_than_there_is(self) -> None:
        if hasattr(self, "arbiter"):
            assert self.arbiter.held_bytes <= BUDGET

    # How it is played

    def _next_event(self) -> float:
        free_at = self._free_at()
        steps = [each.ends_at or max(each.due, free_at) for each in self.calls.values()]
        slices = [min(each.ends_at, each.asks_at) for each in self.pictures.values()]
        return min(steps + slices)

    def _free_at(self) -> float:
        steps = [each.ends_at for each in self.calls.values()]
        slices = [each.ends_at for each in self.pictures.values() if each.ends_at < math.inf]
        return max(steps + slices, default=0.0)

    def _is_busy(self) -> bool:
        return self._free_at() > 0.0

    def _happen(self) -> None:
        for each in self.calls.values():
            if each.ends_at and each.ends_at <= self.now:
                if self.now > each.due + each.grace_s + 1e-9:
                    self.late.append((each.due, self.now))
                each.ends_at = 0.0
                each.due += PERIOD_S
        for number, picture in self.pictures.items():
            if picture.ends_at <= self.now:
                self.arbiter.ended(number, self.now)
                picture.ends_at = math.inf
                picture.asks_at = picture.since = self.now
        # A step begins when it is due; where the device is busy then, when that has ended.
        for each in sorted(self.calls.values(), key=lambda calls: calls.due):
            if not each.ends_at and each.due <= self.now and not self._is_busy():
                each.ends_at = self.now + each.step_s
        self._say()
        for number, picture in self.pictures.items():
            if picture.asks_at <= self.now:
                self._ask(number, picture)

    def _ask(self, number: int, picture: Pictures) -> None:
        answer = self.arbiter.ask(number, picture.cost_s, self.now)
        if not isinstance(answer, Grant):
            assert answer.until > self.now, "or it would ask for ever"
            picture.asks_at = answer.until
            return
        assert answer.slice_s >= picture.cost_s
        assert not self.calls or not self._is_busy()
        taken_s = min(answer.slice_s, 2 * picture.cost_s)
        ends = self.now + taken_s
        for each in sorted(self.calls.values(), key=lambda calls: calls.due + calls.grace_s):
            ends += each.step_s
            assert ends <= each.due + each.grace_s + 1e-9, "a frame would be late"
        picture.ends_at, picture.asks_at, picture.since = self.now + taken_s, math.inf, math.inf

    def _say(self) -> None:
        for number, each in self.calls.items():
            self.arbiter.seats[number].beat = each.beat()


TestSharedDevice = SharedDeviceMachine.TestCase
