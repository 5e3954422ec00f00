"""The picture of bench_stalled_readers: gaps of the good ones beside the server's memory."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from report import Row

SIDES = ("without", "with")


def draw(rows: Sequence[Row], path: Path) -> None:
    figure, (gaps, memory) = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    rounds = sorted({row["round"] for row in rows})
    width = 0.38
    for number, side in enumerate(SIDES):
        own = [row for row in rows if row["side"] == side]
        places = [row["round"] + (number - 0.5) * width for row in own]
        p99 = [row["gap_p99_ms"] for row in own]
        gaps.bar(places, p99, width, label=f"p99, {side}", color=f"C{number}")
        gaps.plot(places, [row["gap_p50_ms"] for row in own], "k_", markersize=22)
        memory.bar(places, [row["memory_mib"] for row in own], width, color=f"C{number}")
    gaps.set(title="gap between two pieces of speech, ms (line: median)", xlabel="round")
    memory.set(title="memory of the server, MiB", xlabel="round")
    for axis in (gaps, memory):
        axis.set_xticks(rounds)
        axis.grid(axis="y", alpha=0.3)
    gaps.legend(loc="lower right")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
