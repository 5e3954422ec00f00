"""Calls and pictures on one device, each in a process of its own, as the engine places them.

The calls' process is the one that runs this: the tick loop and the engine of ``streaming_lm``,
whose beats go to the board of the device as those of a realtime worker do. The pictures' process is
started by it and inherits the board; its worker asks for each slice. No message passes between the
two, and nothing else says who may run.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Row
from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.device_arbiter import IDLE, Beat

MARK = "@"
"""Begins the lines that are meant for the other process."""

IN_FLIGHT = 2
"""So many requests wait or run at any time: the device is never without one."""

READY_S, FIRST_S = 150.0, 60.0
PHASES = ("begins", "denoises", "ends")


class Painter:
    """The pictures' process, as the calls' process sees it."""

    def __init__(self, board: Board, size: str, device: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), str(board.fd), size, device]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(board.fd,),
            text=True,
            start_new_session=True,
        )
        self._said: queue.Queue[Row] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def hear(self, timeout_s: float) -> Row:
        """Return what it says next.

        Raises:
            RuntimeError: It is gone.
            queue.Empty: It says nothing.
        """
        said = self._said.get(timeout=timeout_s)
        if "gone" in said:
            raise RuntimeError("the pictures' process is gone")
        return said

    def tell(self, what: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """End it."""
        try:
            self.tell("stop")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(10)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                self._said.put(json.loads(line[len(MARK) :]))
            else:
                print(f"  pictures: {line.rstrip()}", flush=True)
        self._said.put({"gone": True})


def measure(
    size: str, device: str, until: float, sides: Sequence[int] = (512, 1024), seconds: float = 25.0
) -> Iterator[Row]:
    """Calls alone, then beside pictures of some sizes, then alone again.

    Args:
        seconds: Of each; twice as many beside the first size.
    """
    from bench import beside_calls

    is_real = size == "real"
    calls = beside_calls.Calls(size)
    board = Board.make("bench", 2, 0.080 if is_real else 20.0, 0)
    board.sit(0, is_batch=False)
    painter = Painter(board, size, device)
    try:
        calls.make_network()
        ready = painter.hear(READY_S)
        print(f"pictures are ready: {ready}", flush=True)
        calls.make_engine()
        lasting = [(side, (1 if at else 2) * seconds) for at, side in enumerate(sides)]
        if not is_real:
            seconds, lasting = 2.0, [(64, 2.0)]
        yield {**calls.run(seconds, alone, nothing), "pictures": "none"}
        for side, lasts_s in lasting:
            if side > ready["largest"]:
                print(f"left out, since its slices are too long: {side}", flush=True)
                continue
            if time.monotonic() + lasts_s + FIRST_S / 2 > until:
                print(f"left out for want of time: {side}", flush=True)
                continue
            painter.tell("flood", side=side)
            first = painter.hear(FIRST_S)
            print(f"the first picture of {side}: {first}", flush=True)
            row = calls.run(
                lasts_s, lambda beat: board.publish(0, beat), lambda: painter.tell("count")
            )
            board.publish(0, IDLE)
            painter.tell("report")
            row |= painter.hear(30)
            painter.tell("rest")
            painter.hear(FIRST_S)
            yield {**row, "pictures": f"{side} x {side}", "vae_tile": ready["vae_tile"]}
        if time.monotonic() + seconds + 15 < until:
            yield {**calls.run(seconds, alone, nothing), "pictures": "none, afterwards"}
    finally:
        painter.stop()


def alone(_beat: Beat) -> None:
    """Nobody else uses the device."""


def nothing() -> None:
    """Nobody counts."""


class Worker:
    """The pictures' process: it makes pictures all the time, and counts them when it is told."""

    def __init__(self, board: Board, size: str, device: str) -> None:
        from bench.diffusion_models import SHAPES, make, weights_of
        from bench.diffusion_worker import WatchedTurns, studio_of

        self.shape = SHAPES[size]["flux"]
        pipe = make(self.shape, device)
        self.studio, self.largest = studio_of(
            pipe,
            (1024, 512, 512) if size == "real" else (64, 64),
            # A worker that ends closes its end of the board.
            lambda runner: WatchedTurns(Board.opened_again(board.fd), runner),
            device,
            max_batch=1,
            vae_tiling=True,
        )
        self.turns = self.studio.turns
        self.device = device
        self.side = 0
        self.made = 0
        self.failed: list[str] = []
        self.took: list[float] = []
        self.since = time.monotonic()
        self.seed = 0
        say(
            weights_billion=weights_of(pipe),
            largest=self.largest,
            longest_part_ms=round(1000 * self.studio.runner.longest_part_s, 1),
            vae_tile=pipe.vae.tile_sample_min_size,
            bytes_per_pixel=self.studio.runner._bytes_per_pixel,
            **memory(device),
        )

    def obey(self, order: Row) -> bool:
        """Do what was asked; says whether to go on."""
        match order["do"]:
            case "flood":
                self.side = order["side"]
                self._started = threading.Event()
                self._painting = [
                    threading.Thread(target=self._paint, daemon=True) for _ in range(IN_FLIGHT)
                ]
                for thread in self._painting:
                    thread.start()
                self._started.wait(FIRST_S)
                say(made=self.made, took_s=round(self.took[-1], 2) if self.took else None)
            case "count":
                self.made, self.since = 0, time.monotonic()
                self.took.clear()
                self.failed.clear()
                self.turns.slices.clear()
                self.turns.waited = 0
            case "report":
                say(**self.report())
            case "rest":
                self.side = 0
                for thread in self._painting:
                    thread.join(FIRST_S)
                say(rests=True)
            case _:
                return False
        return True

    def _paint(self) -> None:
        from bench.diffusion_worker import request

        while self.side:
            self.seed += 1
            ask = request(self.seed, self.side, self.shape.steps, self.shape.guidance)
            (made,) = self.studio.ask(ask)
            try:
                made.wait(FIRST_S)
            except RuntimeError as exc:
                print(f"a picture failed: {exc}", flush=True)
                self.failed.append(str(exc))
                if self.studio.died or len(self.failed) > 20:
                    break
            else:
                self.made += 1
                self.took.append(made.took_s)
            self._started.set()
        self._started.set()

    def report(self) -> Row:
        passed_s = time.monotonic() - self.since
        slices = list(self.turns.slices)
        took = [each.took_s for each in slices]
        over = [each.took_s - each.granted_s for each in slices]
        # A request waits for those before it: what passes between two is what one takes.
        row: Row = {
            "images": self.made,
            "images_failed": len(self.failed),
            "images_per_min": round(60 * self.made / passed_s, 2),
            "image_steps": self.shape.steps,
            "step_ms": round(1000 * passed_s / max(1, self.made * self.shape.steps), 1),
            "slices": len(slices),
            "waits": self.turns.waited,
            "device_share": round(sum(took) / passed_s, 3),
            "slice_p50_ms": ms(median(took)) if took else None,
            "slice_max_ms": ms(max(took, default=0.0)),
            "over_grant_max_ms": ms(max(over, default=0.0)),
            **memory(self.device),
        }
        for phase in PHASES:
            parts = [each.part_s for each in slices if each.phase == phase]
            row[f"part_max_ms_{phase}"] = ms(max(parts, default=0.0))
        return row


def memory(device: str) -> Row:
    """What this process holds of the device, at most since the last time, and what all leave."""
    if not device.startswith("cuda"):
        return {}
    import torch

    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return {
        "pictures_peak_gb": round(most / 1e9, 1),
        "pictures_reserved_gb": round(torch.cuda.memory_reserved() / 1e9, 1),
        "device_free_gb": round(torch.cuda.mem_get_info()[0] / 1e9, 1),
    }


def ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def say(**what: Any) -> None:
    # At once, so that no other thread's line comes between.
    sys.stdout.write(MARK + json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    # Only here: the calls' process needs none of it.
    import torch

    from duologue.core.parent import die_with_parent
    from duologue.engines.executors.priority import yield_cores

    parser = argparse.ArgumentParser(description="The pictures' process of bench_diffusion_gpu.")
    parser.add_argument("board", type=int, help="descriptor of the device's board")
    parser.add_argument("size")
    parser.add_argument("device")
    args = parser.parse_args()
    die_with_parent(os.getppid())
    if args.device == "cpu":
        torch.set_num_threads(1)
    worker = Worker(Board.opened_again(args.board), args.size, args.device)
    yield_cores()
    for line in sys.stdin:
        if not worker.obey(json.loads(line)):
            break
    worker.studio.stop()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
