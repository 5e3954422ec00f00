"""How soon a call with a persona of 250 frames begins, alone and while many others run."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.moshi_calls import counted
from bench.moshi_hall import LOOK_S, Hall, plan_for
from bench.moshi_setups import Setup, facts, spread
from bench.moshi_watch import print_slowest
from bench.report import Row
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.prepared import Costs

LIVE = 64
STARTS = 30
SETTLE_S = 2.0
GIVE_UP_S = 5.0
STAYS_S = 0.25
"""Some frames, so that it is in everybody's ticks for a while."""

APART_S = 0.037
"""No fraction of a period, so that calls come at all moments of it."""


def joins(
    engine: FrameEngine,
    costs: Costs,
    setup: Setup,
    others: tuple[int, ...] = (0, LIVE),
    starts: int = STARTS,
    give_up_s: float = GIVE_UP_S,
) -> Iterator[Row]:
    """Let calls come one after the other, while so many others are there.

    Args:
        give_up_s: How long to wait for one.
    """
    for live in others:
        for name in ("", "one for all"):
            ages = [setup.size.config.window + 40] * live
            hall = Hall(engine, costs, plan_for(setup, costs, live + 1), ages, 0)
            yield {
                "name": setup.name,
                "what": ("starts with a persona that is kept" if name else "starts with a persona")
                + f", {live} others",
                "sessions": live,
                **_starts(hall, starts, name, give_up_s),
                **facts(),
            }


def _starts(hall: Hall, starts: int, name: str, give_up_s: float) -> Row:
    hall.begin(SETTLE_S)
    if name:
        # The first one of its kind is what the others begin with.
        _come_and_go(hall, name, give_up_s)
        hall.opened_at.clear()
    for _ in range(starts):
        _come_and_go(hall, name, give_up_s)
    hall.end()
    print_slowest(hall.scheduler.ticks)
    took = spread(hall.starts_s)
    return {
        "starts": took["frames"],
        "gave_up": starts - took["frames"],
        "start_p50_ms": took["p50_ms"],
        "start_max_ms": took["max_ms"],
        **counted(hall),
    }


def _come_and_go(hall: Hall, name: str, give_up_s: float) -> None:
    key = hall.join(name)
    give_up = time.monotonic() + give_up_s
    while key not in hall.scheduler.first_ticks and time.monotonic() < give_up:
        _pass(hall, LOOK_S / 4)
    _pass(hall, STAYS_S)
    if key in hall.outlets:
        hall.leave(key)
    _pass(hall, APART_S)


def _pass(hall: Hall, seconds: float) -> None:
    time.sleep(seconds)
    hall.look_after()
