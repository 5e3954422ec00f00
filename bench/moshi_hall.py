"""Callers of a lockstep model in real time, the loop of the runner, and its thread.

Callers are a thread that posts messages of 20 ms, each at a phase of its own, as a worker's thread
would.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from bench.moshi_setups import Setup, open_aged
from bench.moshi_watch import Watched, WatchedLoop
from duologue.engines.arbiter.device_arbiter import Beat
from duologue.engines.models.moshi_lm.prompt import Prompt, personaplex_prompt
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.switch_interval import prompt_switches
from duologue.engines.runners.streaming_lm.tick_loop import (
    Hear,
    Join,
    Leave,
    Message,
    Outlet,
    Taken,
    _Member,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    plan_groups,
)
from duologue.engines.worker_inbox import WorkerInbox

MESSAGE_S = 0.020
MESSAGE_SAMPLES = 480
HOST_MARGIN_S = 0.001
SETTLE_S = 5.0
LOOK_S = 0.02
PERSONA_TOKENS = 238
"""With the pauses around it: 250 frames that are read before the first one is made."""

PROMPT_FRAMES = PERSONA_TOKENS + 12
TIMING = StepTiming(message_s=MESSAGE_S)
SOUND = (0.1 * np.random.default_rng(1).standard_normal((64, MESSAGE_SAMPLES))).astype(np.float32)


def cost_of(costs: Costs) -> Callable[[int], float]:
    return lambda rows: costs.of_frame(rows) + HOST_MARGIN_S


def plan_for(setup: Setup, costs: Costs, calls: int) -> GroupPlan:
    """Choose groups for so many calls, with room for as many as the setup has."""
    plan = plan_groups(calls, cost_of(costs), TIMING) or GroupPlan(1, setup.sessions, 0.03)
    return GroupPlan(plan.groups, -(-setup.sessions // plan.groups), plan.longest_wait_s)


def persona(engine: FrameEngine) -> Prompt:
    return personaplex_prompt(engine.config, [5] * PERSONA_TOKENS)


class Hall:
    """Callers, the loop and its thread.

    Args:
        ages: Of the calls that are there from the start, in frames.
        leave_at: How old a call becomes, in frames and with its prompt; then another one begins.
            0: for ever.
        on_beat: Told of each step, as the board of a device is that others use, too.
    """

    def __init__(
        self,
        engine: FrameEngine,
        costs: Costs,
        plan: GroupPlan,
        ages: list[int],
        leave_at: int,
        on_beat: Callable[[Beat], None] = lambda _beat: None,
    ) -> None:
        self.engine = engine
        self.inbox: WorkerInbox[Message] = WorkerInbox()
        self.stopping = False
        self.leave_at = leave_at
        self.ages = {f"call {n}": age for n, age in enumerate(ages)}
        self.outlets: dict[str, Outlet] = {}
        self.refused = 0
        self.opened = len(ages)
        self.opened_at: dict[str, float] = {}
        feed = FeedLimits()
        self.loop = WatchedLoop(engine, plan, feed, costs, time.monotonic(), lambda: None, on_beat)
        self.scheduler = Watched(plan, feed, time.monotonic(), engine=engine, name_of=self._name_of)
        self.loop.watch(self.scheduler)
        for seed, (key, age) in enumerate(self.ages.items()):
            self._place(key, age, seed)
        self.threads = [threading.Thread(target=each) for each in (self._beat, self._talk)]

    def _name_of(self, slot: int) -> str:
        return self.loop._by_slot[slot].key

    def _place(self, key: str, age: int, seed: int) -> None:
        """Put an old call into the loop as if it had always been there."""
        slot = open_aged(self.engine, age, seed)
        member = _Member(key, slot, Outlet())
        self.loop._members[key] = self.loop._by_slot[slot] = member
        self.outlets[key] = member.outlet
        self.loop._go_live(member, time.monotonic())

    @property
    def starts_s(self) -> list[float]:
        """From a call's coming to the beginning of its first tick."""
        first_ticks = self.scheduler.first_ticks
        return [first_ticks[key] - at for key, at in self.opened_at.items() if key in first_ticks]

    def run(self, seconds: float, churn_s: float = 0.0) -> None:
        """Let time pass; every ``churn_s`` one call leaves and another one begins."""
        self.begin(SETTLE_S)
        end = time.monotonic() + seconds
        following = time.monotonic() + churn_s
        while time.monotonic() < end:
            time.sleep(LOOK_S)
            self.look_after()
            if churn_s and time.monotonic() >= following:
                self._replace(next(iter(self.outlets)))
                following += churn_s
        self.end()

    def begin(self, settle_s: float) -> None:
        """Open the doors; what happens before everybody is at ease does not count."""
        for thread in self.threads:
            thread.start()
        settled_at = time.monotonic() + settle_s
        while time.monotonic() < settled_at:
            time.sleep(LOOK_S)
            self.look_after()
        self.scheduler.ticks.clear()
        self.scheduler.waits_s.clear()
        self.settled = self.loop.counters()

    def end(self) -> None:
        """Close them, and leave the engine as it was found."""
        self.counted = self.loop.counters()
        self.stopping = True
        for thread in self.threads:
            thread.join()
        self.inbox.take(0)
        for key in list(self.loop._members):
            self.loop.take(Leave(key), time.monotonic())
        self.scheduler.end()

    def look_after(self) -> None:
        """Take what was said, and note who was refused."""
        for key, outlet in list(self.outlets.items()):
            if outlet.error is not None:
                self.refused += 1
                del self.outlets[key], self.ages[key]
                continue
            self.ages[key] += len(outlet.spoken)
            was_full = outlet.is_full
            outlet.spoken.clear()
            if was_full:
                self.inbox.put([Taken(key)])
            if self.leave_at and self.ages[key] >= self.leave_at:
                self._replace(key)

    def _replace(self, key: str) -> None:
        self.leave(key)
        self.join()

    def leave(self, key: str) -> None:
        self.inbox.put([Leave(key)])
        del self.outlets[key], self.ages[key]

    def join(self, name: str = "") -> str:
        """Let somebody come, with a persona.

        Args:
            name: Of the beginning, if it is to be shared.
        """
        self.opened += 1
        key, outlet = f"call {self.opened}", Outlet()
        opening = Opening(persona(self.engine), seed=self.opened, name=name)
        self.outlets[key], self.ages[key] = outlet, PROMPT_FRAMES
        self.opened_at[key] = time.monotonic()
        self.inbox.put([Join(key, opening, outlet)])
        return key

    def _beat(self) -> None:
        wait_s: float | None = 0.0
        with prompt_switches():
            while not self.stopping:
                for message in self.inbox.take(0.1 if wait_s is None else min(wait_s, 0.1)):
                    self.loop.take(message, time.monotonic())
                due = self.loop.advance(time.monotonic(), time.monotonic)
                wait_s = None if due is None else max(0.0, due - time.monotonic())

    def _talk(self) -> None:
        """Post what callers say: each every 20 ms, at a phase of its own."""
        steps = 10
        turn = 0
        following = time.monotonic()
        while not self.stopping:
            now = time.monotonic()
            if now < following:
                time.sleep(following - now)
                continue
            part = turn % steps
            said: list[Message] = [
                Hear(key, SOUND[(turn + n) % 64], now)
                for n, key in enumerate(list(self.outlets))
                if hash(key) % steps == part
            ]
            self.inbox.put(said)
            turn += 1
            following += MESSAGE_S / steps
