"""The command on real files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from duologue.cli import main
from duologue.telemetry import Direction, Entry, Flight, write_flight
from tests.fakes.taped_call import CUT_MS, MemoryTape, interrupted_call

SCRIPTED = """
models:
  - name: {name}
    plugin: scripted
    options: {{lines: ["A line."]}}
engine: {{pipelines: [scripted]}}
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    memory = MemoryTape(content=False)
    interrupted_call(memory)
    path = tmp_path / "sess_1.flight.jsonl"
    path.write_bytes(memory.data)
    return path


def test_a_recording_becomes_a_table_and_a_page(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(recording), "--no-rerun"]) == 0
    said = capsys.readouterr().out
    assert f"{CUT_MS / 1000:.3f} s heard" in said
    page = recording.with_name("sess_1.html")
    assert f"drawn: {page}" in said
    assert "<svg" in page.read_text()


def test_pictures_go_where_they_are_wanted(recording: Path, tmp_path: Path) -> None:
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    wanted = ["--out", str(svg), "--out", str(png), "--no-rerun"]
    assert main(["replay", str(recording), *wanted]) == 0
    ElementTree.fromstring(svg.read_text())
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_call_that_comes_out_differently_fails(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "duologue.yaml"
    config.write_text(SCRIPTED.format(name="model"))
    assert main(["replay", str(recording), "--config", str(config)]) == 1
    assert "steps differ" in capsys.readouterr().out


def test_a_model_that_is_not_served_here_is_named(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "duologue.yaml"
    config.write_text(SCRIPTED.format(name="other"))
    assert main(["replay", str(recording), "--config", str(config)]) == 0
    assert "serve no model 'model'" in capsys.readouterr().out


def test_the_ring_of_a_crash_can_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = (Entry(1.0, Direction.INPUT, "AppendAudio", 960),)
    path = write_flight(Flight("sess", "ValueError", 5.0, entries), tmp_path, max_files=2)
    out = tmp_path / "ring.svg"
    assert main(["replay", str(path), "--out", str(out)]) == 0
    assert "before ValueError" in capsys.readouterr().out
    ElementTree.fromstring(out.read_text())


def test_what_cannot_be_shown_is_refused_in_plain_words(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none.flight.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["replay", str(recording), "--out", "call.gif"]) == 2
    assert ".svg, .html, .png" in capsys.readouterr().err
    first, rest = recording.read_bytes().split(b"\n", 1)
    header = {**msgspec.json.decode(first), "version": 99}
    recording.write_bytes(msgspec.json.encode(header) + b"\n" + rest)
    assert main(["replay", str(recording)]) == 1
    assert "version 99" in capsys.readouterr().err
