"""The picture of bench_latency: each question's time, and the moments of the median turn."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from report import Row


def draw(rows: Sequence[Row], summaries: Sequence[Row], steps: Sequence[str], path: Path) -> None:
    figure, (each, moments) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    questions = list(dict.fromkeys(str(row["question"]) for row in rows))
    for line in summaries:
        system = line["system"]
        times = {row["question"]: row["first_audible_s"] for row in rows if row["system"] == system}
        answered = [question for question in questions if times.get(question) is not None]
        each.plot(answered, [times[question] for question in answered], "o", label=system)
        seen = [(line[step], place) for place, step in enumerate(steps) if line[step] is not None]
        moments.plot([at for at, _ in seen], [place for _, place in seen], "o-", label=system)
    each.set(title="first audible sample, seconds after the end of speech", ylim=(0, None))
    each.tick_params(axis="x", rotation=90)
    moments.set(title="median moment of each step, seconds", xlim=(0, None))
    moments.set_yticks(range(len(steps)), labels=steps)
    moments.invert_yaxis()
    for axes in (each, moments):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
