"""The table of figures in docs/operations.md names what is published, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from duologue.telemetry import LabelSets, Metrics

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
ROW = re.compile(r"^\| `(duologue_[a-z_]+)` \| (?:(`[^|]*`) )?\| (.+) \|$", re.M)
FROM_ELSEWHERE = {"duologue_build_info": ("version",)}
"""Written by the exposition itself."""


def test_the_table_has_every_figure_with_its_labels() -> None:
    metrics = Metrics(LabelSets())
    metrics.count_http(())
    published = {figure.name: figure.labels for figure in metrics} | FROM_ELSEWHERE
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    documented = {
        name: tuple(label.strip().strip("`") for label in labels.split(",")) if labels else ()
        for name, labels, _ in rows
    }
    assert len(rows) == len(documented)
    assert documented == published
