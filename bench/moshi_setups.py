"""Configurations of the lockstep engine that are measured, and engines full of old calls."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

import numpy as np
import torch

from bench.moshi_network import make_network
from bench.report import Row
from duologue.codecs.mimi import MimiConfig
from duologue.engines.models.moshi_lm.config import MOSHI, MoshiConfig, tiny
from duologue.engines.models.moshi_lm.prompt import moshi_prompt
from duologue.engines.runners.streaming_lm.engine import EngineLimits, FrameEngine
from duologue.engines.runners.streaming_lm.frame_step import Network
from duologue.engines.runners.streaming_lm.loading import TINY_CODEC
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import PageLimits
from duologue.engines.runners.streaming_lm.prepared import Costs

WINDOW = MOSHI.window
RESERVE_BYTES = 2_000_000_000
BUCKETS = (1, 2, 8, 16, 32, 48, 64, 80, 96, 112, 128, 150, 168, 192, 224, 256, 288, 320)


@dataclass(frozen=True)
class Size:
    """Which network, and where it runs."""

    config: MoshiConfig = MOSHI
    codec: MimiConfig | None = None
    device: str = "cuda"


TRUE = Size()
TINY = Size(tiny(text_card=400, window=600), TINY_CODEC, "cpu")


@dataclass(frozen=True)
class Setup:
    """One configuration.

    Args:
        narrow: 8-bit weights, 8-bit keys and values, the codec in bfloat16.
        mean_frames: How much of the window calls fill on average.
    """

    name: str
    sessions: int
    narrow: bool
    mean_frames: int = WINDOW
    size: Size = TRUE

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of rows that are measured."""
        return (*(n for n in (1, 8, 16, 32, 64, 128) if n < self.sessions), self.sessions)

    @property
    def buckets(self) -> tuple[int, ...]:
        return (*(n for n in BUCKETS if n < self.sessions), self.sessions)


FULL = Setup("bf16, full window", 80, narrow=False)
NARROW = Setup("fp8 weights and KV, bf16 codec, full window", 168, narrow=True)
HALF = Setup("bf16, 1500 frames on average", 150, narrow=False, mean_frames=1500)
NARROW_HALF = Setup("fp8 weights and KV, bf16 codec, 1500 frames on average", 320, True, 1500)
SMALL = Setup("a tiny network on the processor", 8, False, TINY.config.window, TINY)
"""To try a part without a GPU; its figures mean nothing."""

SETUPS = (FULL, HALF, NARROW, NARROW_HALF)


def chosen(only: tuple[str, ...]) -> list[Setup]:
    names = {"full": FULL, "half": HALF, "narrow": NARROW, "narrow_half": NARROW_HALF}
    return [names[name] for name in only] if only else list(SETUPS)


_made: dict[tuple[bool, Size], Network] = {}
"""The latest network: to make one of the true size takes a minute of a GPU."""


def network_for(setup: Setup) -> Network:
    """Make a network, or take the one that was made for the setup before."""
    key = setup.narrow, setup.size
    if key not in _made:
        forget_networks()
        size = setup.size
        if size.device == "cpu":
            torch.set_num_threads(1)
        _made[key] = make_network(
            size.config,
            size.codec,
            device=size.device,
            eight_bit_weights=setup.narrow,
            narrow_codec=setup.narrow,
        )
    free_memory()
    return _made[key]


def forget_networks() -> None:
    """Let go of what is not used any more."""
    _made.clear()
    free_memory()


def engine_for(
    setup: Setup, network: Network, buckets: tuple[int, ...] | None = None
) -> tuple[FrameEngine, Costs]:
    """Make an engine with all the memory that is left, warm and measured."""
    started = time.perf_counter()
    config, window = setup.size.config, setup.size.config.window
    number_bytes = 1 if setup.narrow else 2
    page_bytes = 2 * config.layers * config.dimension * 32 * number_bytes
    # What the codec keeps of each call, and the graphs' intermediate results, come first.
    codec_bytes = setup.sessions * 20_000_000 // (2 if setup.narrow else 1)
    most = setup.sessions * (setup.mean_frames // 32 + (3 if setup.mean_frames == window else 6))
    fitting = most
    if setup.size.device == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info()
        fitting = (free_bytes - codec_bytes - RESERVE_BYTES) // page_bytes - 1
    pages = PageLimits(min(most, fitting), page_frames=32, window=window, growth_frames=8)
    limits = EngineLimits(
        setup.sessions, pages, buckets or setup.buckets, eight_bit_kv=setup.narrow
    )
    engine = FrameEngine(network, limits)
    engine.warm_up()
    costs = engine.measure(time.perf_counter, setup.mean_frames)
    free_gb = torch.cuda.mem_get_info()[0] / 1e9 if setup.size.device == "cuda" else 0.0
    print(
        f"{setup.name}: {pages.pages} pages of {most} wanted, ready after"
        f" {time.perf_counter() - started:.1f} s, {free_gb:.1f} GB free",
        flush=True,
    )
    print("  steps, ms:", {n: round(1000 * s, 1) for n, s in sorted(costs.frames.items())})
    prefills = {n: [round(1000 * s, 1) for s in both] for n, both in costs.prefills.items()}
    print("  prefills, ms, at the beginning and in a full window:", prefills, flush=True)
    return engine, costs


def open_aged(engine: FrameEngine, age: int, seed: int) -> int:
    """Let a call in and make it as old as so many frames, whose keys and values are noise."""
    slot = engine.open(Opening(moshi_prompt(engine.config), seed=seed))
    while not engine.is_live(slot):
        engine.prefill()
    while (left := age - engine.pages.end(slot)) > 0:
        engine._extend(slot, min(left, engine.limits.pages.chunk))
    return slot


def facts() -> Row:
    on_gpu = torch.cuda.is_available()
    return {
        "card": torch.cuda.get_device_name() if on_gpu else "none",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "weights": "random",
    }


def spread(times_s: list[float]) -> Row:
    if not times_s:
        return {"p50_ms": None, "p99_ms": None, "max_ms": None, "frames": 0}
    ms = 1000 * np.sort(np.array(times_s))
    return {
        "p50_ms": round(float(np.median(ms)), 2),
        "p99_ms": round(float(np.quantile(ms, 0.99, method="higher")), 2),
        "max_ms": round(float(ms[-1]), 2),
        "frames": len(ms),
    }


def free_memory() -> None:
    # A warm engine counts as never garbage; here it is, once it has been measured.
    gc.unfreeze()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
