"""The calls of ``diffusion_beside``: a lockstep engine with as many old calls as are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from bench.moshi_calls import run
from bench.moshi_network import make_network
from bench.moshi_setups import Setup
from bench.report import Row
from duologue.codecs.mimi import MimiConfig
from duologue.engines.arbiter.device_arbiter import Beat
from duologue.engines.models.moshi_lm.config import MOSHI, tiny
from duologue.engines.runners.streaming_lm.engine import EngineLimits, FrameEngine
from duologue.engines.runners.streaming_lm.pages import PageLimits

PAGE_FRAMES = 32
TINY_CODEC = MimiConfig(
    filters=4,
    dimension=16,
    layers=1,
    heads=2,
    feed_forward=32,
    context=20,
    codebook_dimension=8,
    stored_codebooks=8,
    codebooks=8,
)


class Calls:
    """So many calls whose windows are full."""

    def __init__(self, size: str, device: str) -> None:
        is_real = size == "real"
        self.device = device
        self.config = MOSHI if is_real else tiny(window=64)
        self.codec = None if is_real else TINY_CODEC
        self.sessions = 32 if is_real else 4
        self.buckets = (1, 8, 16, 24, 32) if is_real else (4,)
        self.setup = Setup("7B, bf16, full window", self.sessions, narrow=False)

    def make_network(self) -> None:
        began = time.monotonic()
        if self.device == "cpu":
            torch.set_num_threads(1)
        self._network = make_network(self.config, self.codec, device=self.device)
        print(f"the calls' network was made in {time.monotonic() - began:.1f} s", flush=True)

    def make_engine(self) -> None:
        """Make an engine with memory for full windows, warm and measured, while nobody runs."""
        began = time.monotonic()
        window = self.config.window
        pages = PageLimits(
            self.sessions * (window // PAGE_FRAMES + 3),
            page_frames=PAGE_FRAMES,
            window=window,
            growth_frames=8,
        )
        self._engine = FrameEngine(self._network, EngineLimits(self.sessions, pages, self.buckets))
        self._engine.warm_up()
        self._costs = self._engine.measure(time.perf_counter, window)
        steps = {n: round(1000 * s, 1) for n, s in sorted(self._costs.frames.items())}
        print(
            f"the calls' engine was ready after {time.monotonic() - began:.1f} s;"
            f" steps, ms: {steps}{free_gb()}",
            flush=True,
        )

    def run(
        self,
        seconds: float,
        on_beat: Callable[[Beat], None],
        start: Callable[[], None] = lambda: None,
    ) -> Row:
        """Hold them for so long.

        Args:
            start: Called when what is counted begins.
        """
        ages = [self.config.window + 40] * self.sessions
        return run(
            self.setup,
            self._engine,
            self._costs,
            ages,
            0,
            seconds,
            on_beat=on_beat,
            settled=start,
        )


def free_gb() -> str:
    if not torch.cuda.is_available():
        return ""
    free_bytes, all_bytes = torch.cuda.mem_get_info()
    held = torch.cuda.memory_reserved() / 1e9
    return (
        f"; {free_bytes / 1e9:.1f} of {all_bytes / 1e9:.1f} GB are free, calls hold {held:.1f} GB"
    )
