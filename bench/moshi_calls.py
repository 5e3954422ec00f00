"""Ours in real time: as many calls as are promised, each with audio of its own phase.

The tick loop and its scheduler are those of the runner; callers are a thread that posts messages of
20 ms, as a worker's thread would. A late frame is one that is ready more than 80 ms after its last
sample has come; a late tick is one whose step ends more than a period after it was due.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np

from bench.moshi_setups import (
    NARROW,
    WINDOW,
    Setup,
    chosen,
    engine_for,
    facts,
    free_memory,
    network_for,
    open_aged,
    spread,
)
from bench.report import Row
from duologue.engines.models.moshi_lm.config import MOSHI
from duologue.engines.models.moshi_lm.prompt import personaplex_prompt
from duologue.engines.runners.streaming_lm.engine import FrameEngine, Opening
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.tick_loop import (
    Hear,
    Join,
    Leave,
    Message,
    Outlet,
    TickLoop,
)
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import FrameBatch, FrameDeadline
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    capacity,
    plan_groups,
)
from duologue.engines.worker_inbox import WorkerInbox

MESSAGE_S = 0.020
MESSAGE_SAMPLES = 480
HOST_MARGIN_S = 0.001
SETTLE_S = 5.0
PERSONA_TOKENS = 238
PROMPT_FRAMES = PERSONA_TOKENS + 12
SOUND = (0.1 * np.random.default_rng(1).standard_normal((64, MESSAGE_SAMPLES))).astype(np.float32)


class Watched(FrameDeadline):
    """The scheduler, and when each tick was due, began and was done."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.ticks: list[tuple[float, float]] = []

    def finished(self, batch: FrameBatch, now: float) -> None:
        super().finished(batch, now)
        self.ticks.append((batch.due, now))


class Hall:
    """Callers, the loop and its thread.

    Args:
        ages: Of the calls that are there from the start, in frames.
        leave_at: How old a call becomes, in frames and with its prompt; then another one begins.
            0: for ever.
    """

    def __init__(
        self, engine: FrameEngine, costs: Costs, plan: GroupPlan, ages: list[int], leave_at: int
    ) -> None:
        self.engine = engine
        self.inbox: WorkerInbox[Message] = WorkerInbox()
        self.stopping = False
        self.leave_at = leave_at
        self.ages = {f"call {n}": age for n, age in enumerate(ages)}
        self.outlets: dict[str, Outlet] = {}
        self.refused = 0
        self.opened = len(ages)
        self.starts_s: list[float] = []
        self.opening_since: dict[str, float] = {}
        feed = FeedLimits()
        self.scheduler = Watched(plan, feed, time.monotonic())
        self.loop = TickLoop(engine, plan, feed, costs, time.monotonic(), lambda: None)
        self.loop._scheduler = self.scheduler
        for seed, (key, age) in enumerate(self.ages.items()):
            self._place(key, age, seed)
        self.threads = [threading.Thread(target=each) for each in (self._beat, self._talk)]

    def _place(self, key: str, age: int, seed: int) -> None:
        """Put an old call into the loop as if it had always been there."""
        from duologue.engines.runners.streaming_lm.tick_loop import _Member

        slot = open_aged(self.engine, age, seed)
        member = _Member(key, slot, Outlet())
        self.loop._members[key] = self.loop._by_slot[slot] = member
        self.outlets[key] = member.outlet
        self.loop._go_live(member, time.monotonic())

    def run(self, seconds: float, churn_s: float = 0.0) -> None:
        """Let time pass; every ``churn_s`` one call leaves and another one begins."""
        for thread in self.threads:
            thread.start()
        end = time.monotonic() + SETTLE_S
        time.sleep(SETTLE_S)
        self.scheduler.ticks.clear()
        self.settled = self.loop.counters()
        end += seconds
        following = time.monotonic() + churn_s
        while time.monotonic() < end:
            time.sleep(0.02)
            self._look_after(churn_s > 0 and time.monotonic() >= following)
            if churn_s and time.monotonic() >= following:
                following += churn_s
        self.counted = self.loop.counters()
        self.stopping = True
        for thread in self.threads:
            thread.join()

    def _look_after(self, one_leaves: bool) -> None:
        now = time.monotonic()
        for key, outlet in list(self.outlets.items()):
            if outlet.error is not None:
                self.refused += 1
                del self.outlets[key], self.ages[key]
                self.opening_since.pop(key, None)
                continue
            made = len(outlet.spoken)
            if made and key in self.opening_since:
                self.starts_s.append(now - self.opening_since.pop(key))
            outlet.spoken.clear()
            self.ages[key] += made
            if self.leave_at and self.ages[key] >= self.leave_at:
                self._replace(key)
        if one_leaves:
            self._replace(next(iter(self.outlets)))

    def _replace(self, key: str) -> None:
        self.inbox.put([Leave(key)])
        del self.outlets[key], self.ages[key]
        self.opened += 1
        name, outlet = f"call {self.opened}", Outlet()
        self.outlets[name] = outlet
        self.ages[name] = PROMPT_FRAMES
        self.opening_since[name] = time.monotonic()
        prompt = personaplex_prompt(MOSHI, [5] * PERSONA_TOKENS)
        self.inbox.put([Join(name, Opening(prompt, seed=self.opened), outlet)])

    def _beat(self) -> None:
        wait_s: float | None = 0.0
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


def hold(seconds: float, only: tuple[str, ...]) -> Iterator[Row]:
    """Hold each capacity for so long."""
    for setup in chosen(only):
        network = network_for(setup)
        engine, costs = engine_for(setup, network)
        if setup.mean_frames < WINDOW:
            # As in a service in which calls last some minutes: as many of each age. One that
            # begins has read its prompt, and leaves as long before the window's end.
            oldest = 2 * setup.mean_frames - PROMPT_FRAMES
            ages = [int(age) for age in np.linspace(PROMPT_FRAMES, oldest, setup.sessions)]
            leave_at = oldest
        else:
            ages, leave_at = [WINDOW + 40] * setup.sessions, 0
        yield run(setup, engine, costs, ages, leave_at, seconds)
        del engine, network
        free_memory()


def come_and_go(seconds: float, only: tuple[str, ...]) -> Iterator[Row]:
    """Hold 90 % of a capacity while every second one call leaves and one begins."""
    (setup,) = chosen(only) if only else (NARROW,)
    network = network_for(setup)
    engine, costs = engine_for(setup, network)
    sessions = setup.sessions * 9 // 10
    ages = [WINDOW + 40] * sessions
    yield run(setup, engine, costs, ages, 0, seconds, churn_s=1.0)


def run(
    setup: Setup,
    engine: FrameEngine,
    costs: Costs,
    ages: list[int],
    leave_at: int,
    seconds: float,
    churn_s: float = 0.0,
) -> Row:
    timing = StepTiming(message_s=MESSAGE_S)

    def cost(rows: int) -> float:
        return costs.of_frame(rows) + HOST_MARGIN_S

    in_time = capacity(cost, timing, setup.sessions)
    plan = plan_groups(len(ages), cost, timing) or GroupPlan(1, setup.sessions, 0.03)
    room = GroupPlan(plan.groups, -(-setup.sessions // plan.groups), plan.longest_wait_s)
    hall = Hall(engine, costs, room, ages, leave_at)
    hall.run(seconds, churn_s)
    ticks = hall.scheduler.ticks
    late = [done - due for due, done in ticks if done - due > 0.080]
    before, after = hall.settled, hall.counted
    row: Row = {
        "name": setup.name + (", one leaving and one joining a second" if churn_s else ""),
        "sessions": len(ages),
        "promised_in_time": in_time,
        "groups": plan.groups,
        "seconds": seconds,
        **spread([done - due for due, done in ticks]),
        "late_ticks": len(late),
        "frames": after.frames - before.frames,
        "late_frames": (after.late_frames - after.late_in_debt)
        - (before.late_frames - before.late_in_debt),
        "late_in_debt": after.late_in_debt - before.late_in_debt,
        "silent_frames": after.silent_frames - before.silent_frames,
        "skipped_ticks": after.skipped_ticks - before.skipped_ticks,
        "dropped_samples": after.dropped_samples - before.dropped_samples,
        "joined": hall.opened - len(ages),
        "refused": hall.refused,
        "shortened": len(engine.shortened),
        **facts(),
    }
    if hall.starts_s:
        starts = 1000 * np.sort(np.array(hall.starts_s))
        row["start_p50_ms"] = round(float(np.median(starts)), 1)
        row["start_max_ms"] = round(float(starts[-1]), 1)
    return row
