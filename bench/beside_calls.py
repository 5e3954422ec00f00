"""The calls of ``diffusion_beside``: a lockstep engine with as many old calls as are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from bench.moshi_calls import counted
from bench.moshi_hall import LOOK_S, SETTLE_S, Hall, plan_for
from bench.moshi_setups import SMALL, Setup, engine_for, facts, network_for
from bench.moshi_watch import print_slowest
from bench.report import Row
from duologue.engines.arbiter.device_arbiter import Beat

SETUPS = {
    "real": Setup("7B, bf16, full window", 32, narrow=False),
    "tiny": replace(SMALL, sessions=2),
}
BUCKETS = {"real": (1, 8, 16, 24, 32), "tiny": (2,)}


class Calls:
    """So many calls whose windows are full.

    Args:
        size: ``real``, on a GPU, or ``tiny``, on a processor.
    """

    def __init__(self, size: str) -> None:
        self._setup = SETUPS[size]
        self._buckets = BUCKETS[size]

    def make_network(self) -> None:
        began = time.monotonic()
        self._network = network_for(self._setup)
        print(f"the calls' network was made in {time.monotonic() - began:.1f} s", flush=True)

    def make_engine(self) -> None:
        """Make an engine with memory for full windows, warm and measured, while nobody runs."""
        self._engine, self._costs = engine_for(self._setup, self._network, self._buckets)
        print(free_gb(), flush=True)

    def run(
        self, seconds: float, on_beat: Callable[[Beat], None], settled: Callable[[], None]
    ) -> Row:
        """Hold them for so long.

        Args:
            settled: Called when what is counted begins.
        """
        setup = self._setup
        ages = [setup.size.config.window + 40] * setup.sessions
        plan = plan_for(setup, self._costs, len(ages))
        hall = Hall(self._engine, self._costs, plan, ages, 0, on_beat)
        hall.begin(SETTLE_S)
        settled()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(LOOK_S)
            hall.look_after()
        hall.end()
        print_slowest(hall.scheduler.ticks)
        waits_s = hall.scheduler.waits_s
        return {
            "name": setup.name,
            "sessions": len(ages),
            "groups": plan.groups,
            "longest_wait_ms": round(1000 * plan.longest_wait_s, 1),
            "seconds": seconds,
            **counted(hall),
            "ready_p99_ms": round(1000 * float(np.quantile(waits_s, 0.99)), 2) if waits_s else None,
            "ready_max_ms": round(1000 * max(waits_s, default=0.0), 2),
            **facts(),
        }


def free_gb() -> str:
    if not torch.cuda.is_available():
        return "no GPU: this only tries the script out"
    free_bytes, all_bytes = torch.cuda.mem_get_info()
    held = torch.cuda.memory_reserved() / 1e9
    return f"{free_bytes / 1e9:.1f} of {all_bytes / 1e9:.1f} GB are free, calls hold {held:.1f} GB"
