"""The picture of a session's last seconds."""

from __future__ import annotations

from duologue.commands.picture.sheet import Dot, Label
from duologue.commands.replay.ring import draw_ring
from duologue.telemetry import Direction, Entry, Flight


def test_each_kind_has_a_row_and_inputs_come_first() -> None:
    entries = (
        Entry(10.0, Direction.EFFECT, "ResponseDone"),
        Entry(10.5, Direction.INPUT, "AppendAudio", 960),
        Entry(12.0, Direction.EFFECT, "ResponseDone"),
    )
    sheet = draw_ring(Flight("sess", "ValueError", 0.0, entries))
    labels = [shape.text for shape in sheet.shapes if isinstance(shape, Label)]
    assert labels[1:] == ["in AppendAudio", "out ResponseDone"]
    assert [shape.at_s for shape in sheet.shapes if isinstance(shape, Dot)] == [0.0, 0.5, 2.0]
    assert sheet.length_s == 2.0


def test_an_empty_ring_can_be_drawn() -> None:
    assert draw_ring(Flight("sess", "ValueError", 0.0, ())).length_s == 1.0
