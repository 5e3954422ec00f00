from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from duologue.commands.demo.picture import draw_call, envelope, load_matplotlib
from duologue.commands.demo.record import CallRecord
from duologue.core.errors import ConfigError
from tests.fakes.talking_gateway import speech
from tests.unit.commands.demo.scene import good_call

PNG = b"\x89PNG\r\n"


@pytest.mark.timeout(60)  # fonts are looked for when the first picture is drawn
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


def test_the_envelope_follows_the_loudness() -> None:
    levels = envelope(bytes(4800) + speech(100) + bytes(4800))
    assert len(levels) == 30
    assert levels[:9].max() == 0
    assert np.allclose(levels[12:18], 8000 / 32768, rtol=0.05)
    assert len(envelope(b"\0\0")) == 0


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'duologue\[local\]'"):
        load_matplotlib()
