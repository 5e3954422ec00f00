"""What is left of calls that have ended: pages, memory of the device, memory of the process."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import numpy as np
import torch

from bench.moshi_hall import PROMPT_FRAMES, persona
from bench.moshi_setups import Setup, facts
from bench.process_tree import resident_kib
from bench.report import Row
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.opening import Opening

CYCLES = 1000
SETTLED = 100
"""After so many, everything that is made at first use has been."""

STEPS = 3
PERSONAS = 36
"""More than beginnings are kept, so that some have to go; half of all calls have one of these."""


def cycles(
    engine: FrameEngine, setup: Setup, count: int = CYCLES, settled: int = SETTLED
) -> Iterator[Row]:
    """Open calls, let each say something, and close them, at various moments of their lives."""
    started = time.perf_counter()
    assert not engine.streams, "there are calls already"
    begin = _measured(engine)
    _live(engine, range(settled))
    early = _measured(engine)
    _live(engine, range(settled, count))
    late = _measured(engine)
    yield {
        "name": setup.name,
        "what": f"{count} calls of {PROMPT_FRAMES} frames opened, stepped and closed",
        "seconds": round(time.perf_counter() - started, 1),
        **{f"{name}_before": value for name, value in begin.items()},
        **{f"{name}_after_{settled}": value for name, value in early.items()},
        **{f"{name}_after_{count}": value for name, value in late.items()},
        "pages_lost": begin["pages"] - late["pages"],
        "allocated_growth_bytes": late["allocated_bytes"] - early["allocated_bytes"],
        "reserved_growth_bytes": late["reserved_bytes"] - early["reserved_bytes"],
        "resident_growth_kib": late["resident_kib"] - early["resident_kib"],
        **facts(),
    }


def _measured(engine: FrameEngine) -> dict[str, int]:
    """Count pages that nobody's call holds, and memory."""
    on_gpu = engine.on_gpu
    return {
        "pages": engine.pages.free + engine.pages.kept,
        "kept_pages": engine.pages.kept,
        "allocated_bytes": torch.cuda.memory_allocated() if on_gpu else 0,
        "reserved_bytes": torch.cuda.memory_reserved() if on_gpu else 0,
        "resident_kib": resident_kib(os.getpid()),
    }


def _live(engine: FrameEngine, numbers: range) -> None:
    prompt = persona(engine)
    pcm = np.zeros(engine.frame_samples, np.float32)
    draw = random.Random(numbers.start)
    for number in numbers:
        name = f"persona {draw.randrange(PERSONAS)}" if number % 2 else ""
        slot = engine.open(Opening(prompt, seed=number, name=name))
        if number % 10 == 8:
            engine.prefill(engine.limits.chunks[0])
            engine.close(slot)  # while it is being read
            continue
        _make_live(engine, slot)
        for _ in range(STEPS):
            engine.step([slot], [pcm])
        if number % 10 == 5:
            other = engine.fork(slot, number)
            engine.step([slot, other], [pcm, pcm])
            engine.close(slot)
            slot = other
        if number % 10 == 7:
            engine.rewind(slot, 1)
            _make_live(engine, slot)
            engine.step([slot], [pcm])
        engine.close(slot)


def _make_live(engine: FrameEngine, slot: int) -> None:
    while not engine.is_live(slot):
        engine.prefill()
