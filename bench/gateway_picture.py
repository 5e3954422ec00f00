"""The picture of bench_gateway: CPU per session and echo latency over the number of sessions."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
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
    all_counts = sorted({line["sessions"] for line in summaries})
    _axes(cpu, "CPU per session and second, ms", all_counts)
    _axes(latency, "echo latency, ms: p50 solid, p99 dashed, p99.9 dotted", all_counts)
    cpu.legend()
    figure.suptitle("One core, 40 ms frames of Realtime JSON both ways")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _axes(axes: Axes, title: str, counts: Sequence[int]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="sessions", title=title)
    axes.set_xticks(counts, labels=[str(count) for count in counts])
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.grid(alpha=0.3)
