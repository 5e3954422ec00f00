from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from report import Report


def test_the_last_line_is_the_result_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("bench_x", "one thing and another", tmp_path)
    report.finish({"ratio": 1.5})
    out = capsys.readouterr().out
    last = out.splitlines()[-1]
    assert last.startswith("RESULT ")
    stated = json.loads(last.removeprefix("RESULT "))
    assert stated["ratio"] == 1.5
    assert stated["load"] >= 0
    assert "one thing and another" in out


def test_rows_with_different_columns_share_one_table(tmp_path: Path) -> None:
    report = Report("bench_x", "this and that", tmp_path)
    report.add({"a": 1})
    report.add({"a": 2, "b": "x"})
    report.finish({})
    with (tmp_path / "bench_x.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"a": "1", "b": ""}, {"a": "2", "b": "x"}]
