"""What it costs one request to be made in slices: plain diffusers and ours, in turn.

The host's part of a call varies by a half where others use the machine, too, from one call to the
next and by the minute. So the two stand beside each other in every round, in the order A B, B A,
A B; a round gives one ratio, and what is stated is their median (``ratios``). Python collects no
garbage meanwhile.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch

from bench.diffusion_models import Shape, make, weights_of
from bench.diffusion_worker import Studio, request
from bench.ratios import Took
from bench.report import Row
from duologue.engines.runners.diffusion import results
from duologue.engines.runners.diffusion.pipelines import add_points

PLAIN, OWN, SHARED = MODES = ("plain diffusers", "ours, own device", "ours, as beside calls")
ROUNDS = 20
SHARED_EVERY = 3
"""In every third round, ours is also run as on a device that calls use."""

CAUSE_ROUNDS = 6


class SlicingCost:
    """One pipeline.

    Args:
        studio: Ours; ``plain``: another one of the same weights.
        until: When no new round begins any more, of ``time.monotonic``.
    """

    def __init__(
        self, studio: Studio, shape: Shape, side: int, device: str, until: float, rounds: int
    ) -> None:
        self._studio = studio
        self._shape = shape
        self._side = side
        self._device = device
        self._until = until
        self._rounds = rounds
        self._plain = make(shape, device)
        self._plain.set_progress_bar_config(disable=True)
        self._images: dict[str, bytes] = {}

    def costs(self) -> Iterator[Row]:
        """Return a row for each way."""
        took = {mode: Took() for mode in MODES}
        same = dict.fromkeys(MODES, True)
        beside = Took()
        """Of the plain calls in rounds with ``SHARED``."""
        for mode in MODES * 2:
            self._timed(mode, 0)  # the first ones load kernels and choose among them
        self._studio.turns.slices.clear()
        rounds = 0
        with no_garbage_collected():
            while rounds < self._rounds and (rounds < 2 or time.monotonic() < self._until):
                modes = MODES if rounds % SHARED_EVERY == 0 else (PLAIN, OWN)
                seconds = {
                    mode: self._timed(mode, 1 + rounds)
                    for mode in (modes if rounds % 2 else modes[::-1])
                }
                for mode, each in seconds.items():
                    took[mode].add(*each)
                    same[mode] = same[mode] and self._images[mode] == self._images[PLAIN]
                if SHARED in seconds:
                    beside.add(*seconds[PLAIN])
                rounds += 1
        for mode in MODES:
            base = beside if mode == SHARED else took[PLAIN]
            row: Row = {
                "mode": mode,
                "weights_billion": weights_of(self._plain),
                "side": self._side,
                "steps": self._shape.steps,
                **took[mode].over(base),
                "same_image": same[mode],
            }
            if mode == PLAIN:
                row["host_share"] = self._host_share()
            slices = self._studio.turns.slices
            if mode == SHARED and slices:
                row["slices"] = len(slices) // len(took[SHARED].wall)
                row["longest_slice_ms"] = round(1000 * max(each.took_s for each in slices), 1)
                row["longest_part_ms"] = round(1000 * max(each.part_s for each in slices), 1)
            yield row

    def causes(self) -> Iterator[Row]:
        """Return what single parts of it do to a plain call of half as many steps."""
        pointed = make(self._shape, self._device)
        pointed.set_progress_bar_config(disable=True)
        add_points(pointed, lambda: None)
        ways: Mapping[str, Callable[[int], None]] = {
            "plain, in another thread": lambda seed: in_a_thread(lambda: self._call(seed)),
            "plain, in inference mode": self._in_inference_mode,
            "plain, with points that do nothing": lambda seed: self._call(seed, pointed),
        }
        for name, way in ways.items():
            with_it, without = Took(), Took()
            with no_garbage_collected():
                for number in range(-1, CAUSE_ROUNDS if self._rounds == ROUNDS else 2):
                    if number > 1 and time.monotonic() > self._until:
                        break
                    pairs = ((way, with_it), (self._call, without))
                    for call, took in pairs if number % 2 else pairs[::-1]:
                        seconds = self._measured(call, number + 1)
                        if number >= 0:
                            took.add(*seconds)
            yield {"mode": name, "side": self._side, **with_it.over(without)}

    def _timed(self, mode: str, seed: int) -> tuple[float, float, float]:
        return self._measured(lambda each: self._make(mode, each), seed)

    def _make(self, mode: str, seed: int) -> None:
        ask = request(seed, self._side, self._shape.steps, self._shape.guidance)
        if mode == PLAIN:
            self._images[mode] = results.image(ask, self._plain(**call_of(ask)).images[0]).data
            return
        self._studio.turns.shared = mode == SHARED
        (made,) = self._studio.ask(ask)
        self._images[mode] = made.wait(120).image

    def _measured(self, work: Callable[[int], None], seed: int) -> tuple[float, float, float]:
        on_gpu = self._device.startswith("cuda")
        if on_gpu:
            torch.cuda.synchronize()
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        cpu, began = time.process_time(), time.monotonic()
        if on_gpu:
            first.record()
        work(seed)
        if on_gpu:
            last.record()
        took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu
        if on_gpu:
            torch.cuda.synchronize()
        return took_s, first.elapsed_time(last) / 1000 if on_gpu else took_s, cpu_s

    def _call(self, seed: int, pipe: Any = None) -> None:
        shape = self._shape
        (pipe or self._plain)(
            **call_of(request(seed, self._side, shape.steps // 2, shape.guidance))
        )

    def _in_inference_mode(self, seed: int) -> None:
        with torch.inference_mode():
            self._call(seed)

    def _host_share(self) -> float:
        """For how much of a call the host is still telling the device what to do.

        Near 1 the device waits for the host, and all that the host does besides makes it later.
        """
        shares = []
        for seed in range(3):
            ask = request(seed, self._side, self._shape.steps, self._shape.guidance)
            began = time.monotonic()
            self._plain(**call_of(ask) | {"output_type": "latent"})
            told = time.monotonic()
            if self._device.startswith("cuda"):
                torch.cuda.synchronize()
            shares.append((told - began) / (time.monotonic() - began))
        return round(median(shares), 3)


def call_of(ask: Any) -> dict[str, Any]:
    """Return the library's call for a request."""
    return {
        "prompt": ask.prompt,
        "width": ask.width,
        "height": ask.height,
        "num_inference_steps": ask.steps,
        "guidance_scale": ask.guidance,
        "generator": torch.Generator().manual_seed(ask.seed),
        "output_type": "np",
    }


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@contextmanager
def no_garbage_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
