"""Ours in steps: whole frames at many numbers of rows, and how soon a call begins."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bench.moshi_setups import (
    WINDOW,
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
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.opening import Opening

FRAMES = 120
WARM_UP = 10
STARTS = 20
PERSONA_TOKENS = 238
"""With the pauses around it: 250 frames that are read before the first one is made."""


def measure(only: tuple[str, ...]) -> Iterator[Row]:
    for setup in chosen(only):
        network = network_for(setup)
        engine, _ = engine_for(setup, network, setup.steps)
        if setup.mean_frames == WINDOW:
            yield {"name": setup.name, **starts(engine)}
        for row in steps(engine, setup.steps, setup.mean_frames):
            yield {"name": setup.name, "mean_frames": setup.mean_frames, **row}
        del engine, network
        free_memory()


def steps(engine: FrameEngine, buckets: tuple[int, ...], mean_frames: int) -> Iterator[Row]:
    """Step the first n of all calls, for every bucket."""
    count = buckets[-1]
    ages = np.linspace(2, 2 * mean_frames, count) if mean_frames < WINDOW else [WINDOW + 40] * count
    # Spread over the slots, so that the first n are of all ages.
    ages = np.random.default_rng(0).permutation(np.asarray(ages, int))
    slots = [open_aged(engine, int(age), seed) for seed, age in enumerate(ages)]
    pcm = list(0.1 * np.random.default_rng(1).standard_normal((count, 1920)).astype(np.float32))
    for n in buckets:
        took = []
        for frame in range(WARM_UP + FRAMES):
            started = time.perf_counter()
            engine.step(slots[:n], pcm[:n])
            if frame >= WARM_UP:
                took.append(time.perf_counter() - started)
        yield {"rows": n, **spread(took), **facts()}
    for slot in slots:
        engine.close(slot)
    if engine.shortened:
        print(f"  windows that became shorter: {len(engine.shortened)}")


def starts(engine: FrameEngine) -> Row:
    """Open calls of 250 forced frames on an idle engine, until each may take part in a tick."""
    prompt = personaplex_prompt(MOSHI, [5] * PERSONA_TOKENS)
    took = []
    for seed in range(STARTS):
        started = time.perf_counter()
        slot = engine.open(Opening(prompt, seed=seed))
        while not engine.is_live(slot):
            engine.prefill()
        took.append(time.perf_counter() - started)
        engine.close(slot)
    return {"rows": 1, "what": f"start of {len(prompt.rows)} frames", **spread(took), **facts()}
