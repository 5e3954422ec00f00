"""The picture of bench_frame_deadline: how late, and how soon, by the number of calls."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.report import Row


def draw(rows: Sequence[Row], planned: str, late_ms: float, path: Path) -> None:
    """One colour for each cost; solid as planned, dashed in one group, bold what was promised."""
    figure, (late, ready) = pyplot.subplots(1, 2, figsize=(14, 5.5), layout="constrained")
    for number, cost in enumerate(dict.fromkeys(str(row["cost"]) for row in rows)):
        for scheme in dict.fromkeys(str(row["scheme"]) for row in rows):
            mine = [row for row in rows if (row["cost"], row["scheme"]) == (cost, scheme)]
            style = {"color": f"C{number}", "linestyle": "-" if scheme == planned else ":"}
            label = cost if scheme == planned else None
            calls = [row["sessions"] for row in mine]
            late.plot(calls, [row["late_percent"] for row in mine], label=label, **style)
            ready.plot(calls, [row["ready_p99_ms"] for row in mine], label=label, **style)
            promised = [row for row in mine if row["promised"]]
            ready.plot(
                [row["sessions"] for row in promised],
                [row["ready_p99_ms"] for row in promised],
                ".",
                color=f"C{number}",
            )
    late.set(
        title="late frames, percent, clients in debt left out (dotted: one group)", ylim=(-2, 102)
    )
    ready.set(
        title="p99 from last sample to output, ms, clients in debt left out (dots: promised)",
        ylim=(0, 200),
    )
    ready.axhline(late_ms, color="grey", linestyle="--")
    for axes in (late, ready):
        axes.set(xlabel="calls")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
