"""How many calls does one GPU hold with a 7B lockstep model, how soon is a frame ready, and what
does the reference package need for the same?

Random weights of the true size: speed does not depend on their values, and quality is not judged.
The reference is the package ``moshi`` as it ships, batched by hand; its own server holds one call.
A frame goes from the host's PCM to the host's PCM: encode, language model, text and code sampling,
decode. Windows hold noise from the start, so that every step reads as much as in a call that is as
old as is stated.

It runs in parts, each of which takes less than ten minutes on its own; ``merge`` makes one table,
one picture and the last line of what they leave in a folder:

    python bench/bench_moshi_gpu.py steps --out parts        # ours, in steps
    python bench/bench_moshi_gpu.py reference --out parts    # the package, needs moshi==0.2.13
    python bench/bench_moshi_gpu.py capacity --out parts     # 60 s of calls for each capacity
    python bench/bench_moshi_gpu.py churn --out parts        # 5 minutes of coming and going
    python bench/bench_moshi_gpu.py merge --out parts
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report, Row

PARTS = ("steps", "reference", "capacity", "churn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("part", nargs="?", choices=(*PARTS, "merge"))
    parser.add_argument("--out", type=Path, default=Path("build/moshi_gpu"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each capacity")
    parser.add_argument("--churn-seconds", type=float, default=300.0)
    parser.add_argument("--only", default="", help="names of configurations, with commas")
    args = parser.parse_args()
    if args.part is None:
        print("left out: it runs in parts on a GPU of 141 GB; its --help names them")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if args.part == "merge":
        merge(args.out)
        return
    rows = []
    target = args.out / f"{args.part}.json"
    for row in run(args):
        print(row, flush=True)
        rows.append(row)
        target.write_text(json.dumps(rows, indent=1))
    print(f"written: {target}")


def run(args: argparse.Namespace) -> Iterator[Row]:
    # Only here: merging needs no GPU.
    from bench import moshi_calls, moshi_reference, moshi_steps

    only = tuple(name for name in args.only.split(",") if name)
    match args.part:
        case "steps":
            return moshi_steps.measure(only)
        case "reference":
            return moshi_reference.measure()
        case "capacity":
            return moshi_calls.hold(args.seconds, only)
        case _:
            return moshi_calls.come_and_go(args.churn_seconds, only)


def merge(folder: Path) -> None:
    """Make one result of the parts that are there."""
    from bench.moshi_gpu_picture import draw

    parts: dict[str, list[Row]] = {
        part: json.loads((folder / f"{part}.json").read_text())
        for part in PARTS
        if (folder / f"{part}.json").exists()
    }
    report = Report(
        "bench_moshi_gpu",
        "a 7B lockstep model with random weights on one GPU: ours, and the package moshi 0.2.13",
    )
    figures: dict[str, object] = {}
    for part, rows in parts.items():
        for row in rows:
            report.add({"part": part, **row})
            size = row.get("what") or (f"{row['rows']} rows" if "rows" in row else "")
            name = f"{part}: {row['name']}" + (f", {size}" if size else "")
            shown = {
                key: row[key]
                for key in ("sessions", "p50_ms", "p99_ms", "max_ms", "late_ticks", "late_frames")
                if key in row
            }
            figures[name] = shown
            print(f"{name:60} {shown}")
    draw(report.rows, report.picture)
    first = next(iter(parts.values()))[0]
    report.finish({"card": first["card"], "date": first["date"], "figures": figures})


if __name__ == "__main__":
    main()
