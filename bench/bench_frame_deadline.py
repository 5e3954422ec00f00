"""How many calls can one card hold in time, and what do phase groups bring?

A simulation: the real scheduler and its clock, a fake device that costs what a step was measured
to cost (`frame_costs.py`), and callers with messages of 20, 40 and 80 ms, clocks that are off by
up to 300 ppm, jitter, pauses of the network and a coming and going of one call a second. Late is a
frame that is ready more than 80 ms after its last sample has come; those whose client was in debt
(its audio had been held up, and is caught up with by and by) are counted apart. The same callers
are served in the planned number of groups, and all in one. It is seeded: every run gives the same
figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from bench.frame_costs import COSTS, FrameCost
from bench.frame_deadline_picture import draw
from bench.report import Report, Row, print_table
from duologue.engines.runners.streaming_lm.ticks.frame_deadline import (
    LATE_S,
    FrameBatch,
    FrameDeadline,
)
from duologue.engines.runners.streaming_lm.ticks.frame_feed import FeedLimits
from duologue.engines.runners.streaming_lm.ticks.frame_groups import (
    GroupPlan,
    StepTiming,
    capacity,
    plan_groups,
)

LIMITS = FeedLimits()
TIMING = StepTiming()
SESSIONS = (1, 2, 5, 10, 20, 40, 60, 80, 100, 120, 140, 168, 200, 240, 280, 320, 360, 400)
MESSAGES_S = (0.020, 0.040, 0.080)
DRIFT_PPM = 100.0
LARGEST_DRIFT_PPM = 300.0
JITTER_S = 0.002
"""Mean delay of a message on its way; what comes in order stays in order."""
STALLS_PER_S = 0.01
LONGEST_STALL_S = 0.3
CHURN_S = 1.0
PLANNED, ONE = "phase groups", "one group"


@dataclass
class Caller:
    """One client: what it sends is known beforehand, as (arrival, samples)."""

    messages: Iterator[tuple[float, int]]
    first_at: float
    every_s: float
    waiting: tuple[float, int] | None = None


def caller(random: np.random.Generator, now: float, seconds: float) -> Caller:
    every_s = float(random.choice(MESSAGES_S))
    samples = round(every_s * LIMITS.rate_hz)
    drift = np.clip(random.normal(0, DRIFT_PPM), -LARGEST_DRIFT_PPM, LARGEST_DRIFT_PPM) * 1e-6
    # It has been talking for a moment when it is let in, so its messages' phase is known.
    first_at = now - float(random.uniform(0, every_s))
    count = int((seconds - first_at) / every_s) + 1
    sent = first_at + np.arange(count) * (every_s / (1 + drift))
    delay = random.exponential(JITTER_S, count)
    for at in random.uniform(now, seconds, random.poisson(STALLS_PER_S * (seconds - now))):
        until = at + random.uniform(0, LONGEST_STALL_S)
        stalled = (sent > at) & (sent < until)
        delay[stalled] = np.maximum(delay[stalled], until - sent[stalled])
    arrivals = np.maximum.accumulate(sent + delay)
    later = arrivals[arrivals > now].tolist()
    return Caller(iter([(at, samples) for at in later]), first_at, every_s)


def simulate(cost: FrameCost, sessions: int, plan: GroupPlan, seconds: float) -> Row:
    """Serve so many callers for so long; the row is what they would have seen."""
    random = np.random.default_rng(sessions)
    scheduler = FrameDeadline(plan, LIMITS, start=0.0)
    callers: dict[int, Caller] = {}

    def admit(slot: int, now: float) -> None:
        one = callers[slot] = caller(random, now, seconds)
        one.waiting = next(one.messages, None)
        scheduler.join(slot, now, one.first_at, one.every_s)

    for slot in range(sessions):
        admit(slot, 0.0)
    now, busy_s, next_churn = 0.0, 0.0, CHURN_S
    ready_after: list[float] = []
    all_after: list[float] = []
    worst_behind_s = 0.0
    while now < seconds:
        if now >= next_churn:
            slot = int(random.integers(sessions))
            scheduler.leave(slot)
            admit(slot, now)
            next_churn += CHURN_S
        for slot, one in callers.items():
            while one.waiting is not None and one.waiting[0] <= now:
                scheduler.arrived(slot, one.waiting[1], one.waiting[0])
                one.waiting = next(one.messages, None)
        asked = scheduler.next_batch(now)
        if not isinstance(asked, FrameBatch):
            assert asked is not None
            now = asked
            continue
        worst_behind_s = max(worst_behind_s, now - asked.due)
        step_s = cost.draw_s(len(asked.cuts), random)
        now += step_s
        busy_s += step_s
        scheduler.finished(asked, now)
        heard = [cut for cut in asked.cuts if cut.take]
        ready_after.extend(now - cut.since for cut in heard if not cut.in_debt)
        all_after.extend(now - cut.since for cut in heard)
    counted = scheduler.totals()
    per_second = counted.frames * LIMITS.frame_samples / 100
    return {
        "sessions": sessions,
        "groups": plan.groups,
        "late_percent": 100 * (counted.late_frames - counted.late_in_debt) / counted.frames,
        "late_in_debt_percent": 100 * counted.late_in_debt / counted.frames,
        "ready_p50_ms": 1000 * float(np.quantile(ready_after, 0.5)),
        "ready_p99_ms": 1000 * float(np.quantile(ready_after, 0.99)),
        "ready_max_ms": 1000 * max(ready_after),
        "with_debt_p99_ms": 1000 * float(np.quantile(all_after, 0.99)),
        "behind_max_ms": 1000 * worst_behind_s,
        "skipped_percent": 100 * counted.skipped_ticks / (counted.frames + counted.skipped_ticks),
        "device_percent": 100 * busy_s / now,
        "silence_percent": counted.silence_samples / per_second,
        "dropped_percent": counted.dropped_samples / per_second,
        "slipped_percent": (counted.squeezed_samples + counted.stretched_samples) / per_second,
        "moves": counted.moves,
    }


def overfilled(cost: FrameCost, sessions: int) -> GroupPlan:
    """Beyond capacity: the groups of a full device, and everybody let in."""
    most = capacity(cost.p99_s, TIMING, sessions)
    full = plan_groups(most, cost.p99_s, TIMING)
    assert full is not None
    return replace(full, rows=-(-sessions // full.groups))


def measure(report: Report, cost: FrameCost, sessions: int, seconds: float) -> None:
    planned = plan_groups(sessions, cost.p99_s, TIMING)
    one = GroupPlan(1, sessions, TIMING.longest_wait_s(1))
    plans = {PLANNED: planned or overfilled(cost, sessions), ONE: one}
    for scheme, plan in plans.items():
        row = {
            "cost": cost.name,
            "scheme": scheme,
            "promised": scheme == PLANNED and planned is not None,
            "memory": sessions <= cost.held,
            "step_measured": -(-sessions // plan.groups) <= cost.measured,
            **simulate(cost, sessions, plan, seconds),
        }
        report.add(row)


def in_time(report: Report, cost: FrameCost, scheme: str) -> int:
    """The most sessions up to which no frame was late, of the numbers that were simulated."""
    rows = [row for row in report.rows if row["cost"] == cost.name and row["scheme"] == scheme]
    late = min((row["sessions"] for row in rows if row["late_percent"] > 0), default=10**9)
    return max((row["sessions"] for row in rows if row["sessions"] < late), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each simulated call")
    seconds = parser.parse_args().seconds
    report = Report(
        "bench_frame_deadline",
        f"phase groups and one group, {SESSIONS[0]} to {SESSIONS[-1]} calls of {seconds:g} s",
    )
    figures = {}
    for cost in COSTS:
        most = capacity(cost.p99_s, TIMING, SESSIONS[-1])
        for sessions in sorted({*SESSIONS, most}):
            measure(report, cost, sessions, seconds)
        rows = [row for row in report.rows if row["cost"] == cost.name]
        print(f"\n{cost.name}: {most} promised by time, {cost.held} by memory", flush=True)
        hidden = {"cost", "memory", "promised", "step_measured"}
        print_table([{k: v for k, v in row.items() if k not in hidden} for row in rows])
        broken = [row for row in rows if row["promised"] and row["late_percent"] > 0]
        figures[cost.name] = {
            "promised_by_time": most,
            "held_by_memory": cost.held,
            "in_time_phase_groups": in_time(report, cost, PLANNED),
            "in_time_one_group": in_time(report, cost, ONE),
            "promises_broken": len(broken),
        }
    draw(report.rows, PLANNED, LATE_S * 1000, report.picture)
    report.finish(figures)


if __name__ == "__main__":
    main()
