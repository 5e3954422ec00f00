"""The picture of bench_gateway: CPU per session and echo latency over the number of sessions."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from report import Row

QUANTILES = (("p50_ms", "-"), ("p99_ms", "--"), ("p99.9_ms", ":"))


def draw(summaries: Sequence[Row], path: Path) -> None:
    figure, (cpu, latency) = pyplot.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    names = list(dict.fromkeys(line["server"] for line in summaries))
    for color, name in enumerate(names):
        lines = [line for line in summaries if line["server"] == name]
        counts = [line["sessions"] for line in lines]
        style: Row = {"color": f"C{color}", "marker": "o", "markersize": 4}
        cpu.plot(
            counts, [line["cpu_us_per_session_s"] / 1000 for line in lines], label=name, **style
        )
        for key, dash in QUANTILES:
            latency.plot(counts, [line[key] for line in lines], dash, **style)
    _axes(cpu, "CPU per session and second, ms")
    _axes(latency, "echo latency, ms: p50 solid, p99 dashed, p99.9 dotted")
    cpu.legend()
    figure.suptitle("One core, 40 ms frames of Realtime JSON both ways")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _axes(axes: Axes, title: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel="sessions", title=title)
    axes.grid(alpha=0.3, which="both")
