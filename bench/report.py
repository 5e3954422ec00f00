"""What every benchmark leaves behind: a CSV, a picture, a table and one line `RESULT {json}`."""

import csv
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

Row = dict[str, Any]
"""One measurement: column name to number, text or None."""


class Report:
    """Collects the rows of one benchmark and writes them under bench/results/."""

    def __init__(self, name: str, compared: str, folder: Path = RESULTS) -> None:
        """`compared` says in one sentence what stood against what."""
        self.name = name
        self.compared = compared
        self.rows: list[Row] = []
        self._folder = folder
        self._load_at_start = os.getloadavg()[0]
        print(f"{name}: {compared}")
        print(f"on {machine()}, load {self._load_at_start:.2f}", flush=True)

    def add(self, row: Row) -> None:
        self.rows.append(dict(row))

    @property
    def picture(self) -> Path:
        """Where the picture belongs; the folder exists."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{self.name}.png"

    def finish(self, figures: Mapping[str, Any]) -> None:
        """Write the CSV and end the output with the RESULT line."""
        csv_path = self.picture.with_suffix(".csv")
        write_csv(csv_path, self.rows)
        print(f"\nwritten: {csv_path}" + (f", {self.picture}" if self.picture.exists() else ""))
        load = os.getloadavg()[0]
        stated = {
            **figures,
            "load": round(max(load, self._load_at_start), 2),
            "machine": machine(),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        print(f"RESULT {json.dumps(stated)}", flush=True)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line per row; the columns are the keys in order of their first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def print_table(rows: Sequence[Row]) -> None:
    """The rows as aligned columns; numbers with three significant digits after the point."""
    if not rows:
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns] + [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    sys.stdout.flush()


def machine() -> str:
    """Processor, cores that may be used, Python: enough to judge absolute figures by."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
