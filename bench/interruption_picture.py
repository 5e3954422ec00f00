"""The picture of bench_interruption: how the times to stop are spread."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from report import Row


def draw(rows: Sequence[Row], path: Path) -> None:
    figure, (stop, confirm) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == name]
        part = [(i + 1) / len(own) for i in range(len(own))]
        stop.step(sorted(row["stop_ms"] for row in own), part, where="post", label=name)
        confirm.step(sorted(row["confirmed_ms"] for row in own), part, where="post", label=name)
    stop.set(title="confirmation to the last old audio", xlabel="ms", ylabel="part of all")
    confirm.set(title="start of the speech over it to the confirmation", xlabel="ms")
    for axes in (stop, confirm):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
