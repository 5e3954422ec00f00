"""A benchmark that is run in parts, on one machine, and made one result on another."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from bench.report import Report, Row

Parts = Mapping[str, Sequence[Row]]
"""The rows of each part that was run, by its name."""


def write_part(folder: Path, part: str, rows: Sequence[Row]) -> None:
    """Keep the rows of a part, as far as they are there: done again at each row."""
    (folder / f"{part}.json").write_text(json.dumps(rows, indent=1))


def read_parts(folder: Path, names: Iterable[str]) -> Parts:
    """Return the parts that are in a folder, in the order of their names here."""
    files = {name: folder / f"{name}.json" for name in names}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


def merge_parts(
    parts: Parts,
    report: Report,
    name_of: Callable[[Row], str],
    shown: Collection[str],
    draw: Callable[[Sequence[Row], Path], None],
) -> None:
    """Make one table, one picture and the last line of some parts.

    Args:
        name_of: What a row is called in the last line, behind its part.
        shown: Of what a row says, in the last line.
        draw: Makes the picture.
    """
    figures: dict[str, object] = {}
    for part, rows in parts.items():
        for row in rows:
            report.add({"part": part, **row})
            name = f"{part}: {name_of(row)}"
            figures[name] = said = {key: row[key] for key in shown if key in row}
            print(f"{name:80} {said}")
    draw(report.rows, report.picture)
    first = next(iter(parts.values()))[0]
    report.finish({"card": first["card"], "date": first["date"], "figures": figures})
