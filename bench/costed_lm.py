"""A runner that costs what a GPU costs and computes nothing: the host's side of a lockstep model.

Loop, scheduler, jobs and messages are the real ones of ``streaming_lm``; only the engine is not: a
step sleeps for as long as one of so many rows was measured to take, without the interpreter's
lock, as waiting for a device does. What it says is noise for some seconds and nothing for some,
with a word now and then. The first samples of each frame say when its step was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bench.frame_costs import COSTS, FrameCost
from duologue.engines.models.moshi_lm.config import MOSHI
from duologue.engines.models.moshi_lm.prompt import moshi_prompt
from duologue.engines.payloads import LockstepStart
from duologue.engines.runners.registry import RunnerType, Wake
from duologue.engines.runners.streaming_lm.engine import EngineLimits
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import PageLimits, Shortened
from duologue.engines.runners.streaming_lm.prepared import Costs, Samples
from duologue.engines.runners.streaming_lm.runner import StreamingLm
from duologue.engines.runners.streaming_lm.settings import BUCKETS, StreamingLmSettings
from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame

FRAME_SAMPLES, RATE_HZ = 1920, 24_000
SPEAKS_FRAMES, RESTS_FRAMES, WORD_FRAMES = 50, 25, 4
PREFILL_S = 0.013


class CostedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``costed_lm``.

    Args:
        cost: A name of ``frame_costs.COSTS``.
        sessions: How many places there are.
    """

    cost: str
    sessions: int


class CostedEngine:
    """What the loop needs of a ``FrameEngine``."""

    frame_samples, rate_hz, on_gpu = FRAME_SAMPLES, RATE_HZ, True

    def __init__(self, cost: FrameCost, sessions: int) -> None:
        buckets = (*(n for n in BUCKETS if n < sessions), sessions)
        pages = PageLimits(1, page_frames=32, window=MOSHI.window)
        self.limits = EngineLimits(sessions, pages, buckets)
        self.waiting = self.waiting_position = 0
        self.shortened: list[Shortened] = []
        self._cost = cost
        self._free = list(range(sessions))
        self._frames: dict[int, int] = {}
        self._opening: list[int] = []
        random = np.random.default_rng(1)
        noise = 0.1 * random.standard_normal((64, FRAME_SAMPLES))
        self._speech = noise.astype(np.float32)
        self._codes = [tuple(row) for row in random.integers(2048, size=(64, 8)).tolist()]

    def warm_up(self, progress: Callable[[int, int], None]) -> None:
        progress(1, 1)

    def measure(self, clock: Callable[[], float], seen: int | None) -> Costs:
        frames = {n: self._cost.p50_s(n) for n in self.limits.buckets}
        return Costs(frames, dict.fromkeys(self.limits.chunks, (PREFILL_S, PREFILL_S)), 3000)

    def open(self, opening: Opening, log: object) -> int:
        slot = self._free.pop()
        self._frames[slot] = slot  # so that not all speak and rest at the same time
        self._opening.append(slot)
        self.waiting = len(self._opening)
        return slot

    def prefill(self, most: int | None) -> list[int]:
        time.sleep(PREFILL_S)
        live, self._opening, self.waiting = self._opening, [], 0
        return live

    def is_live(self, slot: int) -> bool:
        return slot in self._frames and slot not in self._opening

    def rewind(self, slot: int, frame: int) -> None:
        pass

    def close(self, slot: int) -> None:
        del self._frames[slot]
        self._free.append(slot)

    def step(self, slots: Sequence[int], pcm: Sequence[Samples]) -> list[SpokenFrame]:
        time.sleep(self._cost.p50_s(len(slots)))
        stamp = int(time.monotonic() * 1000)
        spoken = []
        for slot in slots:
            frame = self._frames[slot] = self._frames[slot] + 1
            speaks = frame % (SPEAKS_FRAMES + RESTS_FRAMES) < SPEAKS_FRAMES
            samples = self._speech[frame % 64] if speaks else np.zeros(FRAME_SAMPLES, np.float32)
            if speaks:
                samples = samples.copy()
                samples[0] = (stamp >> 15 & 0x7FFF) / 32768
                samples[1] = (stamp & 0x7FFF) / 32768
            codes = self._codes[frame % 64]
            word = 5 + frame % 1000 if speaks and frame % WORD_FRAMES == 0 else 3
            spoken.append(SpokenFrame(slot, frame, samples, word, codes, codes))
        return spoken


class Words:
    """In place of a vocabulary."""

    def stream(self) -> Words:
        return self

    def read(self, token: int) -> str:
        return "" if token == 3 else f" w{token}"


class Beginnings:
    """Everybody begins with nothing."""

    def opening(self, start: LockstepStart) -> Opening:
        return Opening(moshi_prompt(MOSHI), seed=start.seed)

    def log(self, start: LockstepStart, opening: Opening) -> None:
        return None


def build(settings: CostedSettings, wake: Wake) -> StreamingLm:
    cost = next(each for each in COSTS if each.name == settings.cost)
    engine = CostedEngine(cost, settings.sessions)
    of_runner = StreamingLmSettings(
        network="moshi", weights="", codec="", tokenizer="", message_ms=80, host_margin_ms=0
    )
    return StreamingLm(engine, Beginnings(), Words(), of_runner, wake)  # type: ignore[arg-type]


COSTED_LM = RunnerType(CostedSettings, build, wakes_itself=True)
