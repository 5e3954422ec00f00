"""Is there an order of events in which a frame is doubled, lost, or paid for by a neighbour?"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.engines.frame_counts import FrameCounts
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import FrameBatch, FrameDeadline
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    plan_groups,
)

# Thousands of random steps: on a busy machine they outlast the time that one test usually has.

LIMITS = FeedLimits()
FRAME = LIMITS.frame_samples
PERIOD_S = LIMITS.period_s
MOST = FRAME + LIMITS.debt_samples
GOOD = 0
OTHERS = range(1, 6)
slots = st.sampled_from(OTHERS)


class Stay:
    """What a correct host and a correct model keep of one session."""

    def __init__(self, number: int, since: float) -> None:
        self.number = number
        self.since = since
        self.frozen = False
        self.sent = 0
        self.taken = 0
        self.dropped = 0
        self.frames = 0


class FrameDeadlineMachine(RuleBasedStateMachine):
    """One good caller, and others that do what they like; ``alone`` serves the good one only.

    Steps are as slow as they please: the device may be hopelessly too weak.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stays: dict[int, Stay] = {}
        self.last: dict[int, tuple[int, float]] = {}
        self.numbers: set[int] = set()
        self.left = FrameCounts()

    @initialize(groups=st.integers(1, 3))
    def start(self, groups: int) -> None:
        plan = GroupPlan(groups, len(OTHERS) + 1, 0.010 + PERIOD_S / groups)
        self.groups = groups
        self.shared = FrameDeadline(plan, LIMITS, start=0.0)
        self.alone = FrameDeadline(plan, LIMITS, start=0.0)
        self.alone.join(GOOD, self.now)
        self.join(GOOD)

    def join(self, slot: int) -> None:
        number = self.shared.join(slot, self.now)
        assert number not in self.numbers, "a stay has a number of its own"
        self.numbers.add(number)
        self.stays[slot] = Stay(number, self.now)

    @rule(slot=slots)
    def somebody_joins(self, slot: int) -> None:
        if slot not in self.stays:
            self.join(slot)

    @rule(slot=slots)
    def somebody_leaves(self, slot: int) -> None:
        if slot in self.stays:
            self.left.add(self.shared.leave(slot))
            del self.stays[slot]

    @rule(slot=slots)
    def somebody_is_frozen(self, slot: int) -> None:
        if slot in self.stays:
            self.shared.freeze(slot)
            self.stays[slot].frozen = True

    @rule(slot=slots)
    def somebody_is_thawed(self, slot: int) -> None:
        if slot in self.stays:
            self.shared.thaw(slot, self.now)
            if self.stays[slot].frozen:
                self.stays[slot].frozen = False
                self.stays[slot].since = self.now

    @rule(slot=slots, samples=st.one_of(st.integers(1, 2 * FRAME), st.integers(1, 5 * MOST)))
    def somebody_sends(self, slot: int, samples: int) -> None:
        if slot in self.stays:
            self.send(slot, samples)

    @rule(samples=st.sampled_from([480, FRAME - 3, FRAME, FRAME + 3]))
    def the_good_one_sends(self, samples: int) -> None:
        assert self.alone.arrived(GOOD, samples, self.now) == self.send(GOOD, samples)

    def send(self, slot: int, samples: int) -> int:
        stay = self.stays[slot]
        stay.sent += samples
        dropped = self.shared.arrived(slot, samples, self.now)
        stay.dropped += dropped
        if stay.frozen:
            assert dropped == samples
        return dropped

    @rule(dt=st.floats(0, 0.4), step_s=st.sampled_from([0.0, 0.01, 0.039, 0.09, 0.5]))
    def time_passes(self, dt: float, step_s: float) -> None:
        end = self.now + dt
        while self.now <= end:
            groups = {slot: self.shared.group_of(slot) for slot in self.stays}
            asked = self.shared.next_batch(self.now)
            if not isinstance(asked, FrameBatch):
                assert asked is None or asked > self.now, "else the loop would spin"
                if asked is None or asked > end:
                    break
                self.now = asked
                continue
            self.check(asked, groups)
            self.now += step_s
            self.shared.finished(asked, self.now)
        self.now = max(self.now, end)

    @precondition(lambda self: self.stays)
    @rule(dt=st.floats(0.1, 3.0), message=st.sampled_from([240, 480, FRAME]))
    def all_speak_in_time(self, dt: float, message: int) -> None:
        end = self.now + dt
        while self.now < end:
            for slot in self.stays:
                if slot == GOOD:
                    self.the_good_one_sends(message)
                else:
                    self.send(slot, message)
            self.time_passes(message / LIMITS.rate_hz, 0.01)

    def check(self, batch: FrameBatch, groups: dict[int, int]) -> None:
        tick, due = self.last.get(batch.group, (-1, -1.0))
        assert batch.tick > tick, "no tick twice"
        periods = (batch.due - due) / PERIOD_S if tick >= 0 else batch.tick - tick
        assert periods == pytest.approx(batch.tick - tick), "ticks stay where they are"
        assert batch.due <= self.now < batch.due + PERIOD_S * 1.001, "never a period behind"
        self.last[batch.group] = (batch.tick, batch.due)

        cut_slots = [cut.slot for cut in batch.cuts]
        members = {s for s, g in groups.items() if g == batch.group and not self.stays[s].frozen}
        assert len(set(cut_slots)) == len(cut_slots), "one frame each"
        assert set(cut_slots) <= members
        for masked in members - set(cut_slots):
            moved = self.shared.counters(masked).moves
            assert moved or self.stays[masked].since > batch.due, (
                "masked only before its first tick"
            )
        for cut in batch.cuts:
            stay = self.stays[cut.slot]
            assert (cut.stay, cut.frame) == (stay.number, stay.frames), "in order, none twice"
            assert abs(cut.take + cut.silence - FRAME) <= LIMITS.max_slip_samples
            assert cut.silence == 0 or cut.take + cut.silence == FRAME
            assert cut.since <= self.now
            stay.frames += 1
            stay.taken += cut.take
            stay.dropped += cut.skip
        if GOOD in cut_slots:
            alone = self.alone.next_batch(self.now)
            assert isinstance(alone, FrameBatch)
            assert alone.cuts == [cut for cut in batch.cuts if cut.slot == GOOD]

    @invariant()
    def nothing_is_lost_and_what_waits_is_bounded(self) -> None:
        total = FrameCounts()
        total.add(self.left)
        for slot, stay in self.stays.items():
            counted = self.shared.counters(slot)
            total.add(counted)
            assert 0 <= stay.sent - stay.taken - stay.dropped <= MOST
            assert counted.dropped_samples + counted.skipped_samples == stay.dropped
            assert counted.frames == stay.frames
            taken = stay.frames * FRAME - counted.silence_samples
            assert stay.taken == taken + counted.squeezed_samples - counted.stretched_samples
        if self.stays:
            assert self.shared.totals() == total


TestFrameDeadline = FrameDeadlineMachine.TestCase


def cost(rows: int) -> float:
    return 0.008 + 0.0006 * rows


@settings(max_examples=25, deadline=None)
@given(
    callers=st.lists(
        st.tuples(
            st.floats(0.08, 0.16),
            st.floats(-300e-6, 300e-6),
            st.sampled_from([240, 480, 960, FRAME]),
        ),
        min_size=1,
        max_size=12,
    ),
    seed=st.integers(0, 2**32),
)
def test_lag_never_grows_and_no_frame_is_late_where_the_cost_model_fits(
    callers: list[tuple[float, float, int]], seed: int
) -> None:
    random = Random(seed)
    plan = plan_groups(60, cost, StepTiming())
    assert plan is not None
    one = FrameDeadline(plan, LIMITS, start=0.0)
    sent = [0] * len(callers)
    for slot, (phase, _, message) in enumerate(callers):
        one.join(slot, 0.08, arrives_at=phase, every_s=message / LIMITS.rate_hz)
    # What is sent next has its delay drawn once, and never overtakes what was sent before.
    coming = [phase for phase, _, _ in callers]
    levels = [0] * len(callers)
    now, end = 0.08, 200.0
    while now < end:
        for slot, (phase, drift, message) in enumerate(callers):
            while coming[slot] <= now:
                levels[slot] += message - one.arrived(slot, message, coming[slot])
                sent[slot] += 1
                at = phase + sent[slot] * message / LIMITS.rate_hz / (1 + drift)
                coming[slot] = max(coming[slot], at + random.uniform(0, 0.003))
        asked = one.next_batch(now)
        if not isinstance(asked, FrameBatch):
            assert asked is not None
            now = asked
            continue
        for cut in asked.cuts:
            levels[cut.slot] -= cut.take
            most = 2 * callers[cut.slot][2] + 0.02 * LIMITS.rate_hz
            assert levels[cut.slot] <= most, "lag stays within two messages, however long the call"
        # As slow as all the rows that the plan allows for.
        now += cost(plan.rows)
        one.finished(asked, now)
    totals = one.totals()
    assert totals.late_frames == totals.late_in_debt
    assert totals.skipped_ticks == totals.dropped_samples == 0
