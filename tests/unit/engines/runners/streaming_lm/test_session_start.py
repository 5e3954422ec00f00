"""Sessions that start while others talk: soon, and nobody waits for them.

The costs are those of a card (ADR 25), and time passes only where the engine says so.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engines.models.moshi_lm.config import MOSHI
from duologue.engines.models.moshi_lm.prompt import Prompt, moshi_prompt
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.tick_loop import (
    SPARE_S,
    STARVED_TICKS,
    Hear,
    Join,
    Outlet,
    TickLoop,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    plan_groups,
)
from tests.fakes.clocked_engine import FRAME_SAMPLES, ClockedEngine
from tests.unit.engines.runners.streaming_lm.tiny_network import engine as tiny_engine
from tests.unit.engines.runners.streaming_lm.tiny_network import persona as tiny_persona

pytestmark = pytest.mark.torch

PERIOD_S = 0.08
PERSONA_FRAMES = 250
IN_TIME_S = 0.100
"""From a call's coming to its first tick, on a card that is idle."""

CHUNKS_S = {64: (0.006, 0.006), 256: (0.013, 0.013)}
SLOTS = 80
ROUNDING_S = 1e-6


def steps_s(fixed_s: float, each_s: float) -> Costs:
    return Costs({n: fixed_s + n * each_s for n in (1, 8, 27, 40, SLOTS)}, CHUNKS_S, 3000)


BF16 = steps_s(0.0075, 0.00042)


class House:
    """A loop on a clock that only the engine moves."""

    def __init__(self, costs: Costs, calls: int) -> None:
        plan = plan_groups(calls, costs.of_frame, StepTiming(message_s=0.040))
        assert plan is not None, "so many calls are not in time at all"
        self.plan: GroupPlan = plan
        self.engine = ClockedEngine(costs, SLOTS)
        self.loop = TickLoop(self.engine, plan, FeedLimits(), costs, 0.0, lambda: None)  # type: ignore[arg-type]
        self.outlets: list[Outlet] = []

    @property
    def spacing_s(self) -> float:
        return PERIOD_S / self.plan.groups

    def join(self, frames: int) -> Outlet:
        before = moshi_prompt(MOSHI)
        prompt = Prompt(before.rows * frames, before.last)
        outlet = Outlet()
        key = f"call {len(self.outlets)}"
        self.loop.take(Join(key, Opening(prompt), outlet), self.engine.now)
        self.outlets.append(outlet)
        return outlet

    def run(self, until: float) -> None:
        engine = self.engine
        while engine.now < until:
            for outlet in self.outlets:
                outlet.spoken.clear()
            due = self.loop.advance(engine.now, engine.clock)
            engine.now = until if due is None or due > until else max(engine.now, due)

    def delays_s(self) -> list[float]:
        """How long after its tick each step began."""
        after = [began % self.spacing_s for began, _ in self.engine.steps]
        return [0.0 if self.spacing_s - each < ROUNDING_S else each for each in after]


def test_a_call_with_a_persona_hears_its_first_tick_in_time_on_an_idle_card() -> None:
    house = House(BF16, SLOTS)
    house.engine.now = 0.0301
    house.join(PERSONA_FRAMES)
    while not house.engine.steps:
        due = house.loop.advance(house.engine.now, house.engine.clock)
        assert due is not None
        house.engine.now = max(house.engine.now, due)
    # One chunk holds all of it, and no tick passes that could have been its own.
    assert [size for _, size in house.engine.prefills] == [256]
    first, _ = house.engine.steps[0]
    live = house.engine.prefills[0][0] + CHUNKS_S[256][0]
    assert live <= first <= live + PERIOD_S
    assert first - 0.0301 <= IN_TIME_S


@settings(max_examples=60)
@given(
    talking=st.integers(1, 60),
    coming=st.lists(st.tuples(st.floats(0, 1.5), st.integers(1, 300)), min_size=1, max_size=12),
    rate=st.sampled_from((0.6, 1.0)),
)
def test_no_tick_waits_for_those_who_come(
    talking: int, coming: list[tuple[float, int]], rate: float
) -> None:
    costs = steps_s(0.0075 * rate, 0.00042 * rate)
    house = House(costs, talking + len(coming))
    for _ in range(talking):
        house.join(1)
    house.run(1.0)
    before = len(house.engine.steps)
    for after_s, frames in sorted(coming):
        house.run(1.0 + after_s)
        house.join(frames)
    house.run(6.0)
    steps = house.delays_s()[before:]
    delays = [delay for delay in steps if delay > ROUNDING_S]
    # Only where no chunk ever fits between two ticks, the smallest one is read all the same, once
    # in so many ticks; and the tick after it waits for what is left of that.
    assert max(delays, default=0.0) <= CHUNKS_S[64][0] + ROUNDING_S
    assert len(delays) <= len(steps) / STARVED_TICKS
    if house.spacing_s - costs.of_frame(house.plan.rows) >= CHUNKS_S[64][0] + SPARE_S:
        assert not delays
    assert not house.engine.waiting


def test_what_a_call_says_is_never_late_while_others_come() -> None:
    house = House(BF16, 60)
    for _ in range(48):
        house.join(1)
    house.run(1.0)
    silence = np.zeros(FRAME_SAMPLES // 2, np.float32)
    sent = [0.001 * number for number in range(48)]
    for step in range(200):
        for number, offset in enumerate(sent):
            at = 1.0 + 0.040 * step + offset
            house.run(at)
            house.loop.take(Hear(f"call {number}", silence, house.engine.now), at)
        if step % 20 == 0:
            house.join(PERSONA_FRAMES)
    counted = house.loop.counters()
    assert counted.frames > 48 * 90
    assert counted.late_frames == counted.late_in_debt
    assert counted.skipped_ticks == 0


def test_a_thousand_calls_leave_the_pages_as_one_did() -> None:
    engine = tiny_engine()
    free: set[int] = set()
    for number in range(1000):
        named = Opening(tiny_persona(3 + number % 3), seed=number, name=f"persona {number % 3}")
        slot = engine.open(named)
        if number < 30 or number % 50 == 0:
            while not engine.is_live(slot):
                engine.prefill()
        engine.close(slot)
        if number >= 30:
            free.add(engine.pages.free)
    assert len(free) == 1
    assert engine.streams == engine.waiting == 0
