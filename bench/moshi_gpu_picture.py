"""The picture of bench_moshi_gpu: how long a frame takes by the number of calls; who is late."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.report import Row

PERIOD_MS = 80


def draw(rows: Sequence[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(10, 6), layout="constrained")
    steps = [row for row in rows if row["part"] in ("steps", "reference") and "what" not in row]
    for number, name in enumerate(dict.fromkeys(str(row["name"]) for row in steps)):
        mine = sorted((row for row in steps if row["name"] == name), key=lambda row: row["rows"])
        calls = [row["rows"] for row in mine]
        line = "--" if mine[0]["part"] == "reference" else "-"
        axes.plot(calls, [row["p50_ms"] for row in mine], line, color=f"C{number}", label=name)
        axes.plot(calls, [row["p99_ms"] for row in mine], ":", color=f"C{number}")
    for row in rows:
        if row["part"] in ("capacity", "churn"):
            place = row["sessions"], row["p99_ms"]
            axes.plot(*place, "o" if row["part"] == "capacity" else "s", color="black")
            label = f" {row['sessions']} calls, {row['late_ticks']} late ticks"
            axes.annotate(label, place, fontsize="small")
    axes.axhline(PERIOD_MS, color="grey", linestyle="--")
    first = rows[0]
    day = max(str(row["date"]) for row in rows)
    axes.set(
        xlabel="calls in one step",
        ylabel="host PCM to host PCM, ms (dotted: p99; black: in real time, p99)",
        title=f"7B lockstep model, random weights, {first['card']}, {day}",
        ylim=(0, 90),
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
