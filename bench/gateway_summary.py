"""What bench_gateway's rows say: medians, ratios within a round, slopes. Pure arithmetic."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from report import Row

OURS, PACED, DUPLEX = "duologue", "duologue, paced", "duologue, duplex"
ECHO, FLOOR, PIPECAT = "bare echo", "C floor", "pipecat"
SATURATED_PERCENT = 97.0
"""Above this use of its core a server would cost more if it could: its figure is a floor."""

GENERATOR_LATE_US = 500.0
"""Above this p99 of its own lateness the generator cannot vouch for a latency."""


def summary(rows: Sequence[Row], sessions: int) -> list[Row]:
    """One line per server: medians over the rounds, ratios within the rounds."""
    here = [row for row in rows if row["sessions"] == sessions]
    lines = []
    for name in dict.fromkeys(str(row["server"]) for row in here):
        own = [row for row in here if row["server"] == name]
        timely = [row for row in own if row["generator_late_us"] <= GENERATOR_LATE_US]
        lines.append(
            {
                "server": name,
                "cpu_us_per_session_s": _median(own, "cpu_us_per_session_s"),
                "core_%": _median(own, "core_percent"),
                "ratio_to_echo": median_ratio(here, name, ECHO),
                "p50_ms": _median(timely or own, "p50_ms"),
                "p99_ms": _median(timely or own, "p99_ms"),
                "p99.9_ms": _median(timely or own, "p999_ms"),
                "max_ms": _median(timely or own, "max_ms"),
                "delivered_%": _median(own, "delivered_percent"),
                "resident_kib": _median(own, "loaded_kib"),
                "own_loop_lag_ms": _maximum(own, "own_loop_lag_ms"),
                "timely_rounds": f"{len(timely)}/{len(own)}",
            }
        )
    return lines


def median_ratio(
    rows: Sequence[Row], above: str, below: str, key: str = "cpu_us_per_session_s"
) -> float | None:
    """Median over the rounds of one server's figure by another's in the same round."""
    pairs = _same_round(rows, above, below, key)
    return statistics.median(a / b for a, b in pairs) if pairs else None


def kib_per_session(rows: Sequence[Row], name: str) -> float | None:
    """Slope of resident memory over the number of sessions (least squares of the medians)."""
    counts = sorted({int(row["sessions"]) for row in rows if row["server"] == name})
    if len(counts) < 2:
        return None
    resident = [
        _median([r for r in rows if r["server"] == name and r["sessions"] == n], "loaded_kib")
        for n in counts
    ]
    return statistics.linear_regression(counts, resident).slope


def loop_lag_max_ms(rows: Sequence[Row], name: str) -> float | None:
    """Longest that the server's loop can have been held up, from outside.

    With a frame every few tens of microseconds some frame meets any call that blocks the loop,
    and waits for it; so the longest latency is a bound for the longest call. It includes the
    times at which the machine took the core away, which hit a bare echo just as well.
    """
    own = [row for row in rows if row["server"] == name]
    timely = [row for row in own if row["generator_late_us"] <= GENERATOR_LATE_US]
    return _maximum(timely or own, "max_ms")


def figures(rows: Sequence[Row], summaries: Sequence[Row], counts: Sequence[int]) -> dict[str, Any]:
    """The RESULT line: Duologue against the bare echo and against pipecat."""
    most = max(counts)
    by_count = {n: [row for row in rows if row["sessions"] == n] for n in counts}
    ratios = {n: median_ratio(by_count[n], OURS, ECHO) for n in counts}
    paced = {n: median_ratio(by_count[n], PACED, ECHO) for n in counts}
    duplex = {n: median_ratio(by_count[n], DUPLEX, ECHO) for n in counts}
    judged = [r for n, r in ratios.items() if n >= 200 and r is not None]
    extra = [a - b for a, b in _same_round(by_count[most], OURS, ECHO, "p99_ms")]
    stated: dict[str, Any] = {
        "n": most,
        "ratio_to_echo": max(judged, default=ratios[most]),
        "pipecat_to_ours": median_ratio(by_count.get(30, []), PIPECAT, OURS),
        "loop_lag_max_ms": loop_lag_max_ms(by_count[most], OURS),
        "loop_lag_max_echo_ms": loop_lag_max_ms(by_count[most], ECHO),
        "echo_p99_ms": _pick(summaries, OURS, most, "p99_ms"),
        "echo_p99_over_bare_ms": statistics.median(extra) if extra else None,
        "kib_per_session": kib_per_session(rows, OURS),
        "kib_per_session_echo": kib_per_session(rows, ECHO),
        "cpu_ms_per_session_s": _in_ms(_pick(summaries, OURS, most, "cpu_us_per_session_s")),
        "saturated_runs": sum(
            row["core_percent"] > SATURATED_PERCENT for row in rows if row["server"] == OURS
        ),
        "late_runs": sum(row["generator_late_us"] > GENERATOR_LATE_US for row in rows),
        "runs": len(rows),
    }
    stated |= {f"ratio_to_echo_{n}": ratio for n, ratio in ratios.items()}
    stated |= {f"ratio_to_echo_paced_{n}": r for n, r in paced.items() if r is not None}
    stated |= {f"ratio_to_echo_duplex_{n}": r for n, r in duplex.items() if r is not None}
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in stated.items()}


def all_summaries(rows: Sequence[Row], counts: Sequence[int]) -> list[Row]:
    return [{"sessions": n, **line} for n in counts for line in summary(rows, n)]


def _same_round(rows: Sequence[Row], above: str, below: str, key: str) -> list[tuple[float, float]]:
    values = {(row["server"], row["round"]): row[key] for row in rows}
    rounds = sorted({row["round"] for row in rows})
    return [
        (values[above, r], values[below, r])
        for r in rounds
        if (above, r) in values and (below, r) in values
    ]


def _pick(summaries: Sequence[Row], name: str, sessions: int, key: str) -> Any:
    found = [s[key] for s in summaries if s["server"] == name and s["sessions"] == sessions]
    return found[0] if found else None


def _median(rows: Sequence[Row], key: str) -> float:
    values = [float(row[key]) for row in rows if row[key] is not None]
    return statistics.median(values) if values else math.nan


def _maximum(rows: Sequence[Row], key: str) -> float | None:
    return max((row[key] for row in rows if row[key] is not None), default=None)


def _in_ms(value_us: float | None) -> float | None:
    return None if value_us is None else value_us / 1000
