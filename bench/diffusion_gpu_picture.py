"""The picture of bench_diffusion_gpu: costs of slices, gains of batches, and calls beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.report import Row

LATE_MS = 80


def draw(rows: Sequence[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 5), layout="constrained")
    _slicing(axes[0], [row for row in rows if row["part"] == "slicing"])
    _batching(axes[1], [row for row in rows if row["part"] == "batching"])
    _beside(axes[2], [row for row in rows if row["part"] == "beside"])
    first = rows[0]
    figure.suptitle(f"Random weights, {first['card']}, {first['date']}")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _bars(axes: Axes, names: Sequence[str], values: Sequence[float]) -> None:
    places = range(len(names))
    axes.barh(places, values, color="C0")
    axes.margins(x=0.12)
    axes.set_yticks(places, names, fontsize="small")
    axes.invert_yaxis()
    for place, value in zip(places, values, strict=True):
        axes.annotate(f" {value:g}", (value, place), va="center", fontsize="small")


def _slicing(axes: Axes, rows: Sequence[Row]) -> None:
    mine = [row for row in rows if row["mode"].startswith("ours")]
    _bars(axes, [f"{row['name']}\n{row['mode']}" for row in mine], [row["ratio"] for row in mine])
    for place, row in enumerate(mine):
        if "ratio_low" in row:
            axes.plot((row["ratio_low"], row["ratio_high"]), (place, place), color="black")
    axes.axvline(1.05, color="grey", linestyle="--")
    axes.set(title="one request: time over that of plain diffusers", xlim=(0.5, None))


def _batching(axes: Axes, rows: Sequence[Row]) -> None:
    mine = [row for row in rows if row["batch"] > 1]
    names = [f"{row['name']}\n{row['side']} x {row['side']}" for row in mine]
    _bars(axes, names, [row["gain"] for row in mine])
    axes.axvline(1.3, color="grey", linestyle="--")
    axes.set(title="eight together: throughput over one by one", xlim=(0.8, None))


def _beside(axes: Axes, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        if row["p50_ms"] is None:
            continue
        for key, mark in (("p50_ms", "o"), ("p99_ms", "s"), ("max_ms", "x")):
            axes.plot(row[key], place, mark, color="C0")
        label = f"{row['late_frames']} of {row['frames']} frames late"
        if "images_per_min" in row:
            label += f", {row['images_per_min']:g} images a minute"
        axes.annotate(label, (1, place + 0.3), fontsize="small")
    axes.set_yticks(range(len(rows)), [f"pictures: {row['pictures']}" for row in rows])
    axes.axvline(LATE_MS, color="grey", linestyle="--")
    axes.set(
        title="from a tick to its frames, ms",
        xlim=(0, 90),
        ylim=(len(rows) - 0.4, -0.6),
    )
