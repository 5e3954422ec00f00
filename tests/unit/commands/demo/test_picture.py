from __future__ import annotations

from pathlib import Path

from duologue.commands.demo.picture import draw_call
from duologue.commands.demo.record import CallRecord
from tests.unit.commands.demo.scene import good_call

PNG = b"\x89PNG\r\n"


def test_a_call_becomes_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "call.png"
    draw_call(good_call(), path)
    data = path.read_bytes()
    assert data.startswith(PNG)
    assert len(data) > 50_000


def test_a_call_of_which_little_is_known_becomes_one_too(tmp_path: Path) -> None:
    path = tmp_path / "call.png"
    record = good_call()
    record.turns[0].timing = None
    record.turns[1].answer = None
    draw_call(record, path)
    draw_call(CallRecord(), path)
    assert path.read_bytes().startswith(PNG)
