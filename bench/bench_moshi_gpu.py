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
    python bench/bench_moshi_gpu.py memory joins --out parts # 1,000 calls; starts while others talk
    python bench/bench_moshi_gpu.py merge --out parts

Parts that are named together share what they can: a network of the true size takes a while to make.
``--size tiny`` runs ``memory`` and ``joins`` on a processor, to try them out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.parts import merge_parts, read_parts, write_part
from bench.report import Report, Row

PARTS = ("steps", "reference", "capacity", "churn", "memory", "joins")

SHOWN = (
    *("sessions", "p50_ms", "p99_ms", "max_ms", "late_ticks", "late_frames"),
    *("start_p50_ms", "start_max_ms"),
    *("pages_lost", "allocated_growth_bytes", "reserved_growth_bytes", "resident_growth_kib"),
)
"""Of what a row says, in the last line."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join((*PARTS, "merge")))
    parser.add_argument("--out", type=Path, default=Path("build/moshi_gpu"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each capacity")
    parser.add_argument("--churn-seconds", type=float, default=300.0)
    parser.add_argument("--only", default="", help="names of configurations, with commas")
    parser.add_argument("--size", choices=("true", "tiny"), default="true")
    args = parser.parse_args()
    if unknown := set(args.parts) - {*PARTS, "merge"}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if not args.parts:
        print("left out: it runs in parts on a GPU of 141 GB; its --help names them")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if args.parts == ["merge"]:
        merge(args.out)
        return
    rows: dict[str, list[Row]] = {part: [] for part in args.parts}
    for part, row in run(args):
        print(part, row, flush=True)
        rows[part].append(row)
        write_part(args.out, part, rows[part])
    print(f"written: {args.out}")


def run(args: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    # Only here: merging needs no GPU.
    from bench import moshi_calls, moshi_reference, moshi_setups, moshi_steps

    only = tuple(name for name in args.only.split(",") if name)
    for part in args.parts:
        match part:
            case "steps":
                rows = moshi_steps.measure(only)
            case "reference":
                moshi_setups.forget_networks()
                rows = moshi_reference.measure()
            case "capacity":
                rows = moshi_calls.hold(args.seconds, only)
            case "churn":
                rows = moshi_calls.come_and_go(args.churn_seconds, only)
            case _:
                continue
        for row in rows:
            yield part, row
    yield from of_one_engine(args.parts, args.size)


def of_one_engine(parts: list[str], size: str) -> Iterator[tuple[str, Row]]:
    """What needs the same engine, each leaving it empty."""
    from bench import moshi_joins, moshi_memory
    from bench.moshi_setups import FULL, SMALL, engine_for, network_for

    if not {"memory", "joins"} & set(parts):
        return
    is_tiny = size == "tiny"
    setup, live = (SMALL, 3) if is_tiny else (FULL, moshi_joins.LIVE)
    engine, costs = engine_for(setup, network_for(setup), (1, 2, live, setup.sessions))
    if "memory" in parts:
        for row in moshi_memory.cycles(engine, setup, *((60, 30) if is_tiny else ())):
            yield "memory", row
    if "joins" in parts:
        for row in moshi_joins.joins(
            engine, costs, setup, (0, live), *((3, 60.0) if is_tiny else ())
        ):
            yield "joins", row


def merge(folder: Path) -> None:
    """Make one result of the parts that are there."""
    from bench.moshi_gpu_picture import draw

    parts = read_parts(folder, PARTS)
    if not parts:
        print(f"nothing is in {folder}")
        return
    merge_parts(
        parts,
        Report(
            "bench_moshi_gpu",
            "a 7B lockstep model, random weights, on one GPU: ours, and the package moshi 0.2.13",
        ),
        name_of,
        SHOWN,
        draw,
    )


def name_of(row: Row) -> str:
    size = row.get("what") or (f"{row['rows']} rows" if "rows" in row else "")
    return str(row["name"]) + (f", {size}" if size else "")


if __name__ == "__main__":
    main()
