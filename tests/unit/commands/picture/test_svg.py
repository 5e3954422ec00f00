"""A sheet as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from duologue.commands.picture.sheet import Area, Box, Dot, Label, Line, Sheet
from duologue.commands.picture.svg import LEFT, MOST_WIDTH, RIGHT, points_per_s, write_svg, x_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*shapes: object, length_s: float = 100.0) -> ElementTree.Element:
    sheet = Sheet("a <call>", length_s, 200)
    sheet.add(*shapes)  # type: ignore[arg-type]
    return ElementTree.fromstring(write_svg(sheet))


def test_every_shape_has_its_element_at_its_moment() -> None:
    root = drawn(
        Box(1, 3, 10, 20, "#111", name="box", hint="a & b"),
        Area([(0, 0), (1, 5)], "#222", 0.5),
        Line(1, 2, 3, 4, "#333"),
        Dot(2, 7, "#444"),
        Label(5, 6, "<said>", "#555", anchor="end", bold=True),
    )
    box = root.find(f".//{SVG}rect[@id='box']")
    assert box is not None
    assert float(box.attrib["x"]) == LEFT + 90
    assert float(box.attrib["width"]) == 180
    assert box.findtext(f"{SVG}title") == "a & b"
    assert [root.find(f"{SVG}{kind}") is not None for kind in ("polygon", "line", "circle")] == [
        True,
        True,
        True,
    ]
    label = root.find(f"{SVG}text")
    assert label is not None
    assert (label.text, label.attrib["text-anchor"]) == ("<said>", "end")
    assert root.findtext(f"{SVG}title") == "a <call>"


def test_what_was_not_heard_is_hatched() -> None:
    root = drawn(Box(0, 1, 0, 1, "#111", hatched=True, name="ghost"))
    ghost = root.find(f".//{SVG}rect[@id='ghost']")
    assert ghost is not None
    assert ghost.attrib["fill"] == "url(#hatch)"


@pytest.mark.parametrize("length_s", [0.5, 10.0, 3600.0])
def test_long_calls_stay_within_a_width(length_s: float) -> None:
    sheet = Sheet("t", length_s, 100)
    assert x_of(sheet, length_s) + RIGHT <= MOST_WIDTH + LEFT + RIGHT
    assert points_per_s(sheet) > 0
