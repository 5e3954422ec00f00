from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.parts import merge_parts, read_parts, write_part
from bench.report import Report, Row


def test_parts_are_read_in_their_order_and_those_not_run_left_out(tmp_path: Path) -> None:
    write_part(tmp_path, "last", [{"name": "c"}])
    write_part(tmp_path, "first", [{"name": "a"}])
    write_part(tmp_path, "first", [{"name": "a"}, {"name": "b"}])
    parts = read_parts(tmp_path, ("first", "between", "last"))
    assert list(parts.items()) == [
        ("first", [{"name": "a"}, {"name": "b"}]),
        ("last", [{"name": "c"}]),
    ]
    assert read_parts(tmp_path, ("between",)) == {}


def test_they_become_one_table_one_picture_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[Row] = []

    def draw(rows: Sequence[Row], path: Path) -> None:
        drawn.extend(rows)
        path.write_bytes(b"a picture")

    facts = {"card": "a card", "date": "2026-12-01"}
    parts = {
        "speed": [{"name": "one", "p50_ms": 3, "secret": 1, **facts}],
        "room": [{"name": "two", "most": 4, **facts}],
    }
    merge_parts(
        parts,
        Report("bench_tried", "one against the other", tmp_path),
        lambda row: row["name"] + "!",
        ("p50_ms", "most"),
        draw,
    )
    assert [row["part"] for row in drawn] == ["speed", "room"]
    table = (tmp_path / "bench_tried.csv").read_text().splitlines()
    assert table[0] == "part,name,p50_ms,secret,card,date,most"
    line = capsys.readouterr().out.splitlines()[-1]
    result = json.loads(line.removeprefix("RESULT "))
    assert result["figures"] == {"speed: one!": {"p50_ms": 3}, "room: two!": {"most": 4}}
    assert (result["card"], result["date"]) == ("a card", "2026-12-01")
