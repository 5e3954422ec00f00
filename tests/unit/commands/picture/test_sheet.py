"""What is on a picture."""

from __future__ import annotations

from duologue.commands.picture.sheet import Dot, Label, Sheet


def test_shapes_lie_in_the_order_in_which_they_were_drawn() -> None:
    sheet = Sheet("t", 1.0, 100)
    first, second, third = Dot(0, 0, "red"), Label(0, 0, "x", "red"), Dot(1, 0, "red")
    sheet.add(first)
    sheet.add(second, third)
    assert sheet.shapes == [first, second, third]
