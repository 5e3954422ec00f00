"""What a session costs at the edge: CPU, memory, latency of Duologue beside echoes and pipecat.

Every server gets the same load, one after the other, and the order turns round each round; the
server is pinned to one core and the load generator to another. Load: 40 ms frames of PCM16 at
24 kHz as Realtime JSON, 25 in and 25 out per session and second, echoed back. Absolute times move
with the machine's state, so judge the ratios: each is the median of ratios within a round.
"""

import argparse
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import process_tree
from gateway_picture import draw
from gateway_summary import (
    DUPLEX,
    ECHO,
    FLOOR,
    OURS,
    PACED,
    PIPECAT,
    all_summaries,
    figures,
    summary,
)
from loadgen import Load, LoadFailed, run_load
from priority import add_urgent_option, check_urgent
from report import Report, Row, print_table
from servers import (
    ASSETS,
    Running,
    Server,
    bare_echo,
    duologue,
    floor_echo,
    pipecat_echo,
    running,
)

LOOP_LAG_BUCKET = re.compile(r'^duologue_loop_lag_seconds_bucket{le="(\S+)"} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Plan:
    sessions: Sequence[int]
    rounds: int
    seconds: int
    warm_seconds: int
    server_cpu: int
    generator_cpu: int
    urgent: bool

    def run(self, server: Server, load: Load) -> tuple["Meter", dict[str, Any]]:
        """Start the server, load it, stop it; its meter and the generator's figures."""
        with running(server, cpu=self.server_cpu, urgent=self.urgent) as at:
            meter = Meter(at)
            seen = run_load(
                at.port,
                server.target,
                load,
                meter.at_mark,
                cpu=self.generator_cpu,
                urgent=self.urgent,
            )
        return meter, seen


class Meter:
    """Reads the server's process tree at the generator's marks."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.idle_kib = process_tree.resident_kib(server.pid)
        self.loaded_kib = 0
        self.own_loop_lag_ms: float | None = None
        self._cpu_s: dict[str, float] = {}

    def at_mark(self, mark: str) -> None:
        self._cpu_s[mark] = process_tree.cpu_s(self._server.pid)
        if mark == "END":
            self.loaded_kib = process_tree.resident_kib(self._server.pid)
            self.own_loop_lag_ms = _own_loop_lag_ms(self._server)

    @property
    def cpu_s(self) -> float:
        return self._cpu_s["END"] - self._cpu_s["START"]


def main() -> None:
    args = _arguments()
    plan = Plan(
        sessions=args.sessions or ([30, 200] if args.quick else [20, 30, 200, 600]),
        rounds=args.rounds or (1 if args.quick else 3),
        seconds=args.seconds or (2 if args.quick else 3),
        warm_seconds=1,
        server_cpu=args.server_cpu,
        generator_cpu=args.generator_cpu,
        urgent=check_urgent(args.urgent),
    )
    servers = _servers(args.only, quick=args.quick)
    report = Report(
        "bench_gateway",
        f"CPU, memory and echo latency per session of {', '.join(s.name for s in servers)}, "
        f"interleaved in {plan.rounds} rounds, N = {', '.join(map(str, plan.sessions))}",
    )
    for server in servers:
        _verify(server, plan)
    for sessions in plan.sessions:
        for round_number in range(plan.rounds):
            in_turn = servers if round_number % 2 == 0 else servers[::-1]
            for server in in_turn:
                if server.only_sessions not in (None, sessions):
                    continue
                report.add(_measure(server, sessions, round_number, plan))
        print(f"\nN = {sessions}, medians of {plan.rounds} rounds")
        print_table(summary(report.rows, sessions))
    draw(summaries := all_summaries(report.rows, plan.sessions), report.picture)
    report.finish(figures(report.rows, summaries, plan.sessions))


def _measure(server: Server, sessions: int, round_number: int, plan: Plan) -> Row:
    load = Load(
        sessions,
        seconds=plan.seconds,
        warm_seconds=plan.warm_seconds + (2 if server.name == PIPECAT else 0),
        connect_gap_us=server.connect_gap_us,
        settle_ms=server.settle_ms,
    )
    meter, seen = plan.run(server, load)
    latency, late = seen["latency_us"], seen["lateness_us"]
    wanted_bytes = seen["appends"] * seen["frame_bytes"]
    return {
        "server": server.name,
        "sessions": sessions,
        "round": round_number,
        "cpu_us_per_session_s": meter.cpu_s * 1e6 / (sessions * plan.seconds),
        "core_percent": 100 * meter.cpu_s / plan.seconds,
        "p50_ms": latency["p50"] / 1e3,
        "p99_ms": latency["p99"] / 1e3,
        "p999_ms": latency["p999"] / 1e3,
        "max_ms": latency["max"] / 1e3,
        "matched_deltas": latency["n"],
        "appends": seen["appends"],
        "deltas": seen["deltas"],
        "coalesced_deltas": seen["coalesced"],
        "delivered_percent": 100 * seen["audio_bytes"] / max(1, wanted_bytes),
        "lost": seen["lost"],
        "closed": seen["closed"],
        "generator_late_us": late["p99"],
        "generator_late_max_us": late["max"],
        "generator_core_percent": 100 * seen["cpu_s"] / plan.seconds,
        "idle_kib": meter.idle_kib,
        "loaded_kib": meter.loaded_kib,
        "own_loop_lag_ms": meter.own_loop_lag_ms,
        "load": os.getloadavg()[0],
    }


def _verify(server: Server, plan: Plan) -> None:
    """Bit-identical audio in order, or there is nothing to measure."""
    load = Load(10, seconds=1, verify=True, connect_gap_us=server.connect_gap_us)
    try:
        _, seen = plan.run(server, load)
    except LoadFailed as failure:
        raise SystemExit(f"{server.name} does not echo what it gets: {failure}") from failure
    if seen["silent"] or seen["lost"]:
        raise SystemExit(
            f"{server.name}: {seen['silent']} of 10 sessions silent, {seen['lost']} frames lost"
        )
    late = seen["unanswered_at_start"]
    print(
        f"verified: {server.name} returns {seen['deltas']} deltas unchanged and in order"
        + (f" ({late} frames before the answers began)" if late else "")
    )


def _servers(only: Sequence[str], *, quick: bool) -> list[Server]:
    makers = {
        FLOOR: floor_echo,
        ECHO: bare_echo,
        OURS: lambda: duologue(OURS, ASSETS / "echo.yaml"),
        PACED: lambda: duologue(PACED, ASSETS / "echo_paced.yaml"),
        DUPLEX: lambda: duologue(DUPLEX, ASSETS / "echo.yaml", duplex=True),
        PIPECAT: pipecat_echo,
    }
    names = only or [name for name in makers if not (quick and name in (FLOOR, PACED, DUPLEX))]
    unknown = [name for name in names if name not in makers]
    if unknown:
        raise SystemExit(f"no server named {unknown[0]!r}, choose from {', '.join(makers)}")
    return [makers[name]() for name in names]


def _own_loop_lag_ms(server: Running) -> float | None:
    """The edge below which the server's own loop-lag histogram stays; None if it has none."""
    if server.server.metrics_path is None:
        return None
    try:
        text = server.get(server.server.metrics_path)
    except OSError:  # too busy to answer within the limit
        return math.inf
    buckets = re.findall(
        r'^duologue_loop_lag_seconds_bucket{le="(\S+)"} (\S+)$', text, re.MULTILINE
    )
    counts = {float(edge): float(count) for edge, count in buckets}
    total = max(counts.values(), default=0.0)
    return min((edge for edge, n in counts.items() if n == total), default=math.nan) * 1000


def _arguments() -> argparse.Namespace:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this needs two cores: one for the server, one for the generator")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, under a minute")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int, help="measured seconds of each run")
    parser.add_argument("--sessions", type=int, nargs="+", metavar="N")
    parser.add_argument("--only", nargs="+", default=[], metavar="SERVER", help="by name")
    add_urgent_option(parser)
    parser.add_argument("--server-cpu", type=int, default=cores[0])
    parser.add_argument("--generator-cpu", type=int, default=cores[1])
    return parser.parse_args()


if __name__ == "__main__":
    main()
