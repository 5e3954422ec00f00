"""One pipeline alone on a device: what slices cost, what batches bring, how soon a cancel acts."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np
import torch

from bench.diffusion_models import SHAPES, Shape, make, weights_of
from bench.diffusion_slicing import MODES, ROUNDS, SHARED, SlicingCost
from bench.diffusion_worker import PERIOD_S, Studio, WatchedTurns, request, studio_of
from bench.report import Row
from duologue.engines.arbiter.board import Board

CANCEL_AT = (1, 3, 5, 8, 10, 2, 6, 9)
BATCH = 8


class Alone:
    """The parts, and the pipelines that they share.

    Args:
        size: ``real``, or ``tiny`` to try it out on a processor.
        until: When no new measurement begins any more, of ``time.monotonic``.
    """

    def __init__(self, size: str, device: str, until: float) -> None:
        self.size = size
        self.device = device
        self.until = until
        self.is_real = size == "real"
        self.side = 512 if self.is_real else 64
        # The tiny ones run on processors that others use, too: nothing there is in time.
        self._board = Board.make("bench", 2, PERIOD_S if self.is_real else 20.0, 0)
        self._studio: tuple[str, Studio] | None = None

    def measure(self, names: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Return the rows of some parts, with the name of each row's part."""
        parts: dict[str, Callable[[str, Shape], Iterator[Row]]] = {
            "slicing": self.slicing,
            "cancel": self.cancel,
            "batching": self.batching,
        }
        for key, shape in SHAPES[self.size].items():
            for name in (each for each in parts if each in names):
                try:
                    for row in parts[name](key, shape):
                        yield name, {"name": shape.name, **row, **facts(self.device)}
                except Exception:  # noqa: BLE001 - the others may work, and what was measured stays
                    traceback.print_exc()
                    print(f"FAILED: {name} of {shape.name}", flush=True)
        self.close()

    def slicing(self, key: str, shape: Shape) -> Iterator[Row]:
        """One request at a time: the library's call, and ours in slices, taking turns."""
        rounds = ROUNDS if self.is_real else 2
        # Half of what is left, where another pipeline follows.
        others = len(SHAPES[self.size]) - 1 - list(SHAPES[self.size]).index(key)
        now = time.monotonic()
        until = now + (self.until - now) / (1 + others)
        studio = self._studio_of(key, shape)
        cost = SlicingCost(studio, shape, self.side, self.device, until, rounds)
        yield from cost.costs()
        yield from cost.causes()
        del cost
        free_memory()

    def batching(self, key: str, shape: Shape) -> Iterator[Row]:
        """Throughput of eight requests together against one after the other."""
        studio = self._studio_of(key, shape)
        studio.turns.shared = False
        for side in (self.side, 2 * self.side):
            steps = shape.steps if side == self.side and shape.steps > 20 else shape.steps // 2
            rates = {}
            for count in (1, BATCH):
                if time.monotonic() > self.until:
                    print(f"left out for want of time: {shape.name}, {side}, {count}", flush=True)
                    return
                self._batch(studio, shape, count, side, 2)
                runs = 3 if count == 1 else 1
                seconds = [self._batch(studio, shape, count, side, steps) for _ in range(runs)]
                rates[count] = count / median(seconds)
                yield {
                    "mode": "ours, own device",
                    "side": side,
                    "steps": steps,
                    "batch": count,
                    "seconds": round(median(seconds), 3),
                    "images_per_min": round(60 * rates[count], 2),
                    "gain": round(rates[count] / rates[1], 3),
                    **peak(self.device),
                }

    def cancel(self, key: str, shape: Shape) -> Iterator[Row]:
        """From the cancel until the device has nothing left to do, in denoising steps."""
        studio = self._studio_of(key, shape)
        for mode in MODES[1:]:
            studio.turns.shared = mode == SHARED
            (whole,) = studio.ask(request(1, self.side, shape.steps, shape.guidance))
            whole.wait(60)
            step_s = float(median(np.diff(whole.steps))) if len(whole.steps) > 2 else 0.0
            if mode == SHARED:
                # Steps are told of at the ends of slices there.
                step_s = (whole.steps[-1] - whole.steps[0]) / (len(whole.steps) - 1)
            ended, freed = [], []
            for number, at in enumerate(CANCEL_AT if self.is_real else CANCEL_AT[:3]):
                (made,) = studio.ask(request(100 + number, self.side, 1000, shape.guidance))
                while len(made.steps) < at and not made.over.is_set():
                    made.stepped.wait(5)
                    made.stepped.clear()
                time.sleep(step_s * number / len(CANCEL_AT))
                asked = time.monotonic()
                studio.cancel(made)
                made.over.wait(60)
                ended.append(made.ended - asked)
                synchronize(self.device)
                freed.append(time.monotonic() - asked)
                if made.outcome != "cancelled":
                    raise RuntimeError(f"a cancelled request ended so: {made.outcome}")
            yield {
                "mode": mode,
                "side": self.side,
                "step_ms": round(1000 * step_s, 2),
                "cancels": len(freed),
                "ended_p50_ms": round(1000 * median(ended), 2),
                "free_p50_ms": round(1000 * median(freed), 2),
                "free_max_ms": round(1000 * max(freed), 2),
                "free_max_steps": round(max(freed) / step_s, 3) if step_s else None,
            }

    def _batch(self, studio: Studio, shape: Shape, count: int, side: int, steps: int) -> float:
        asks = [request(number, side, steps, shape.guidance) for number in range(count)]
        made = studio.ask(*asks)
        for each in made:
            each.wait(150)
        return max(each.ended for each in made) - made[0].began

    def _studio_of(self, key: str, shape: Shape) -> Studio:
        """Return the one of a pipeline; one lives at a time."""
        if self._studio is not None and self._studio[0] == key and not self._studio[1].died:
            return self._studio[1]
        self.close()
        began = time.monotonic()
        pipe = make(shape, self.device)
        made_s = time.monotonic() - began
        studio, _ = studio_of(
            pipe,
            # Once more, should something have taken long by chance.
            (self.side, self.side),
            # A worker that ends closes its end of the board.
            lambda runner: WatchedTurns(Board.opened_again(self._board.fd), runner),
            self.device,
            max_batch=BATCH,
        )
        self._studio = key, studio
        print(
            f"{shape.name}: {weights_of(pipe)} billion weights, made in {made_s:.1f} s, ready after"
            f" {time.monotonic() - began:.1f} s; longest part"
            f" {1000 * studio.runner.longest_part_s:.1f} ms",
            flush=True,
        )
        return studio

    def close(self) -> None:
        """Let the pipeline go."""
        if self._studio is not None:
            self._studio[1].stop()
            self._studio = None
        free_memory()


def facts(device: str) -> Row:
    on_gpu = device.startswith("cuda")
    return {
        "card": torch.cuda.get_device_name() if on_gpu else "none",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "weights": "random",
    }


def peak(device: str) -> Row:
    """The most memory that was taken since the last time."""
    if not device.startswith("cuda"):
        return {}
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return {"peak_gb": round(most / 1e9, 1)}


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def free_memory() -> None:
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
