"""What it costs that a gateway is a process of its own.

The same echo, the same calls: one process, a session host with one gateway, and with two. All run
on one core and in turn, so that what is compared is CPU, not how many cores there are. CPU of the
supervisor counts too.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import process_tree
from loadgen import Load, run_load
from report import Report, Row, print_table
from servers import Running, Server, duologue, running

matplotlib.use("Agg")

from matplotlib import pyplot  # the backend is chosen first

ASSETS = Path(__file__).with_name("assets")
ONE = "one process"
KINDS = (ONE, "1 gateway", "2 gateways")


@dataclass
class Reading:
    """CPU seconds of the tree and of its parts, at a mark of the generator."""

    total_s: float
    parts_s: Sequence[float]


def main() -> None:
    args = _arguments()
    report = Report(
        "bench_edges",
        f"CPU and echo latency of {', '.join(KINDS)} with {args.sessions} calls, interleaved in "
        f"{args.rounds} rounds",
    )
    for number in range(args.rounds):
        for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
            report.add(_measure(kind, number, args))
    summaries = [_summary(kind, report.rows) for kind in KINDS]
    print_table(summaries)
    _draw(summaries, report.picture)
    one, single = summaries[0], summaries[1]
    report.finish(
        {
            "sessions": args.sessions,
            **{line["server"]: line["cpu_us_per_session_s"] for line in summaries},
            "hop_us_per_session_s": round(
                single["cpu_us_per_session_s"] - one["cpu_us_per_session_s"]
            ),
            "hop_ratio": round(single["cpu_us_per_session_s"] / one["cpu_us_per_session_s"], 2),
            "p99_ms": {line["server"]: line["p99_ms"] for line in summaries},
        }
    )


def _server(kind: str) -> Server:
    base = duologue(kind, ASSETS / "echo.yaml")
    if kind == ONE:
        return base
    command, edges = base.command, kind.split()[0]
    return replace(base, command=lambda port, ttl_s: [*command(port, ttl_s), "--edges", edges])


def _measure(kind: str, number: int, args: argparse.Namespace) -> Row:
    server = _server(kind)
    load = Load(args.sessions, seconds=args.seconds, warm_seconds=1)
    marks: dict[str, Reading] = {}
    with running(server, cpu=args.server_cpu) as at:

        def at_mark(mark: str) -> None:
            marks[mark] = _read(at)

        seen = run_load(at.port, server.target, load, at_mark, cpu=args.generator_cpu)
    per_session = 1e6 / (args.sessions * args.seconds)
    start, end = marks["START"], marks["END"]
    parts = [late - early for late, early in zip(end.parts_s, start.parts_s, strict=True)]
    return {
        "server": kind,
        "round": number,
        "cpu_us_per_session_s": (end.total_s - start.total_s) * per_session,
        "host_us_per_session_s": parts[0] * per_session if parts else None,
        "gateways_us_per_session_s": sum(parts[1:]) * per_session if parts else None,
        "p50_ms": seen["latency_us"]["p50"] / 1e3,
        "p99_ms": seen["latency_us"]["p99"] / 1e3,
        "lost": seen["lost"],
        "load": os.getloadavg()[0],
    }


def _read(server: Running) -> Reading:
    return Reading(
        process_tree.cpu_s(server.pid),
        [process_tree.cpu_s(part) for part in _parts(server.pid)],
    )


def _parts(pid: int) -> list[int]:
    """The processes that the server has started, the session host first; none in one process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return sorted(int(child) for child in text.split())


def _summary(kind: str, rows: Sequence[Row]) -> Row:
    mine = [row for row in rows if row["server"] == kind]
    line: dict[str, Any] = {"server": kind}
    for key in ("cpu", "host", "gateways"):
        values = [row[f"{key}_us_per_session_s"] for row in mine]
        known = [value for value in values if value is not None]
        line[f"{key}_us_per_session_s"] = round(statistics.median(known)) if known else None
    for key in ("p50_ms", "p99_ms"):
        line[key] = round(statistics.median(row[key] for row in mine), 2)
    return line


def _draw(summaries: Sequence[Row], path: Path) -> None:
    figure, (cpu, late) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    names = [line["server"] for line in summaries]
    host = [line["host_us_per_session_s"] or line["cpu_us_per_session_s"] for line in summaries]
    gateways = [line["gateways_us_per_session_s"] or 0 for line in summaries]
    cpu.bar(names, host, label="sessions (and all else, in one process)")
    cpu.bar(names, gateways, bottom=host, label="gateways")
    cpu.set_title("CPU per session and second, us")
    cpu.legend(fontsize=8)
    late.bar(names, [line["p99_ms"] for line in summaries], color="C2", label="p99")
    late.bar(names, [line["p50_ms"] for line in summaries], color="C3", label="p50")
    late.set_title("echo latency, ms")
    late.legend(fontsize=8)
    figure.suptitle("One core, 40 ms frames of Realtime JSON both ways")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _arguments() -> argparse.Namespace:
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--server-cpu", type=int, default=cores[0])
    parser.add_argument("--generator-cpu", type=int, default=cores[-1])
    return parser.parse_args()


if __name__ == "__main__":
    main()
