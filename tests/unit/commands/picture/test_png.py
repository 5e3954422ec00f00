"""A sheet as PNG."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from duologue.commands.picture.png import load_matplotlib, write_png
from duologue.commands.picture.sheet import Area, Box, Dot, Label, Line, Sheet
from duologue.core.errors import ConfigError


@pytest.mark.parametrize("length_s", [3.0, 3600.0])
def test_every_shape_can_be_drawn(tmp_path: Path, length_s: float) -> None:
    sheet = Sheet("t", length_s, 200)
    sheet.add(
        Box(0, 1, 10, 20, "#111111"),
        Box(1, 2, 10, 20, "#111111", hatched=True),
        Area([(0, 0), (1, 5), (1, 0)], "#222222", 0.5),
        Line(1, 2, 3, 4, "#333333"),
        Dot(2, 7, "#444444"),
        Label(1, 60, "said", "#555555", anchor="middle", bold=True),
    )
    path = tmp_path / "call.png"
    write_png(sheet, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'duologue\[local\]'"):
        load_matplotlib()
