"""What do pictures cost on a GPU, and what do they cost the calls on it?

Pipelines of the true shapes with random weights: speed does not depend on their values, and quality
is not judged. Four parts:

- ``slicing``: one request, by a plain call of diffusers and by our runner in slices: on a device of
  its own, and as on one that calls use, where slices end between blocks of the model.
- ``cancel``: from a cancel until the device has nothing left to do, in denoising steps.
- ``batching``: pictures a minute, eight requests together against one after the other.
- ``beside``: 32 calls of a 7B lockstep model with full windows, alone and beside a 12B diffusion
  transformer that makes pictures all the time in a worker process of its own. The arbiter of the
  device alone says who runs.

    python bench/bench_diffusion_gpu.py all --out parts      # 8 minutes on a GPU of 141 GB
    python bench/bench_diffusion_gpu.py beside --out parts   # or some of them
    python bench/bench_diffusion_gpu.py merge --out parts    # one table, one picture, one last line
    python bench/bench_diffusion_gpu.py all --size tiny --device cpu --out tried

It needs torch, triton, transformers, diffusers, av and what Duologue itself needs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.parts import merge_parts, read_parts, write_part
from bench.report import Report, Row

ALONE = ("slicing", "cancel", "batching")
PARTS = (*ALONE, "beside")
LIMITS_S = {"beside": 280.0, "alone": 190.0}
"""Of the two processes of ``all``, the more important one first; then each is killed."""

SPARE_S = 15.0
"""How long before its limit a process begins nothing new."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("part", nargs="?", choices=(*PARTS, "alone", "all", "merge"))
    parser.add_argument("--out", type=Path, default=Path("build/diffusion_gpu"))
    parser.add_argument("--size", choices=("real", "tiny"), default="real")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--sides", type=int, nargs="+", default=[512, 1024], help="of `beside`")
    parser.add_argument("--seconds", type=float, default=25.0, help="of each of them")
    parser.add_argument("--limit", type=float, default=0.0, help="seconds, of one part or process")
    args = parser.parse_args()
    if args.part is None:
        print("left out: it runs in parts on a GPU of 141 GB; its --help names them")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if args.part == "all":
        run_all(args)
        try:
            merge(args.out)
        except Exception:  # noqa: BLE001 - the parts are there, and can be merged elsewhere
            traceback.print_exc()
    elif args.part == "merge":
        merge(args.out)
    else:
        run_parts(args)


def run_all(args: argparse.Namespace) -> None:
    """Run the parts in processes of their own, so that none can break another."""
    for name, limit_s in LIMITS_S.items():
        limit_s = args.limit or limit_s
        command = [sys.executable, __file__, name, "--out", str(args.out), "--size", args.size]
        command += ["--device", args.device, "--limit", str(limit_s)]
        began = time.monotonic()
        try:
            code = subprocess.run(command, timeout=limit_s, check=False).returncode
        except subprocess.TimeoutExpired:
            code = "killed at its limit"
        print(f"== {name}: {code}, {time.monotonic() - began:.0f} s", flush=True)


def run_parts(args: argparse.Namespace) -> None:
    """Run one part or more in this process; what is there is written at every row."""
    found: dict[str, list[Row]] = {}
    try:
        for part, row in rows_of(args):
            print(part, row, flush=True)
            found.setdefault(part, []).append(row)
            write_part(args.out, part, found[part])
    except BaseException:  # noqa: BLE001 - said, and then the process ends
        traceback.print_exc()
        sys.stderr.flush()
        sys.stdout.flush()
        # Threads may be in the midst of something on the device.
        os._exit(1)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def rows_of(args: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    until = time.monotonic() + (args.limit or 600.0) - SPARE_S
    # Only here: merging needs no torch.
    import torch

    torch.set_grad_enabled(False)
    if args.device == "cpu":
        torch.set_num_threads(1)
    if args.part == "beside":
        from bench import diffusion_beside

        for row in diffusion_beside.measure(
            args.size, args.device, until, args.sides, args.seconds
        ):
            yield "beside", row
        return
    from bench.diffusion_alone import Alone

    names = ALONE if args.part == "alone" else (args.part,)
    yield from Alone(args.size, args.device, until).measure(names)


def merge(folder: Path) -> None:
    """Make one result of the parts that are there."""
    from bench.diffusion_gpu_picture import draw

    parts = read_parts(folder, PARTS)
    if not parts:
        print(f"nothing is in {folder}")
        return
    merge_parts(
        parts,
        Report(
            "bench_diffusion_gpu",
            "diffusion transformers with random weights on one GPU: alone, and beside 32 calls",
            # What was only tried is no result.
            **({"folder": folder} if is_trial(parts) else {}),
        ),
        name_of,
        SHOWN,
        draw,
    )


def name_of(row: Row) -> str:
    return str(row["name"]) + "".join(
        form.format(row[key]) for key, form in NAMED.items() if key in row
    )


NAMED = {"mode": ", {}", "side": ", {0} x {0}", "batch": ", {} together", "pictures": ", {}"}
SHOWN = (
    *(
        "p50_s",
        "ratio",
        "ratio_low",
        "ratio_high",
        "host_share",
        "same_image",
        "gain",
        "images_per_min",
        "free_max_ms",
        "free_max_steps",
    ),
    *("sessions", "p50_ms", "p99_ms", "max_ms", "frames", "late_ticks", "late_frames"),
    "ready_max_ms",
)


def is_trial(parts: dict[str, list[Row]]) -> bool:
    return any(row["card"] == "none" for rows in parts.values() for row in rows)


if __name__ == "__main__":
    main()
