"""Ours in real time: as many calls as are promised, each with audio of its own phase.

The tick loop and its scheduler are those of the runner. A late frame is one that is ready more than
80 ms after its last sample has come; a late tick is one whose step ends more than a period after it
was due.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.moshi_hall import PROMPT_FRAMES, TIMING, Hall, cost_of, plan_for
from bench.moshi_setups import (
    NARROW,
    WINDOW,
    Setup,
    chosen,
    engine_for,
    facts,
    free_memory,
    network_for,
    spread,
)
from bench.moshi_watch import print_slowest
from bench.report import Row
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.prepared import Costs
from duologue.engines.runners.streaming_lm.ticks.frame_groups import capacity

PERIOD_S = 0.080


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
    plan = plan_for(setup, costs, len(ages))
    hall = Hall(engine, costs, plan, ages, leave_at)
    hall.run(seconds, churn_s)
    print_slowest(hall.scheduler.ticks)
    row: Row = {
        "name": setup.name + (", one leaving and one joining a second" if churn_s else ""),
        "sessions": len(ages),
        "promised_in_time": capacity(cost_of(costs), TIMING, setup.sessions),
        "groups": plan.groups,
        "seconds": seconds,
        **counted(hall),
        "joined": hall.opened - len(ages),
        "shortened": len(engine.shortened),
        **facts(),
    }
    if starts_s := hall.starts_s:
        starts = spread(starts_s)
        row["start_p50_ms"], row["start_max_ms"] = starts["p50_ms"], starts["max_ms"]
    return row


def counted(hall: Hall) -> Row:
    """Tell what became of the ticks and frames of a hall that was closed."""
    took_s = [tick.took_s for tick in hall.scheduler.ticks]
    before, after = hall.settled, hall.counted
    return {
        **spread(took_s),
        "late_ticks": sum(each > PERIOD_S for each in took_s),
        "frames": after.frames - before.frames,
        "late_frames": (after.late_frames - after.late_in_debt)
        - (before.late_frames - before.late_in_debt),
        "late_in_debt": after.late_in_debt - before.late_in_debt,
        "silent_frames": after.silent_frames - before.silent_frames,
        "skipped_ticks": after.skipped_ticks - before.skipped_ticks,
        "dropped_samples": after.dropped_samples - before.dropped_samples,
        "refused": hall.refused,
    }
