from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from duologue.core.errors import CodecError
from duologue.telemetry import (
    Direction,
    Entry,
    Flight,
    decode_flight,
    encode_flight,
    keep_flight,
    write_flight,
)

entries = st.builds(
    Entry,
    at_s=st.integers(0, 10**7).map(lambda ms: ms / 1000),
    direction=st.sampled_from(Direction),
    kind=st.text(min_size=1),
    size_bytes=st.integers(0, 2**32 - 1),
    sample=st.integers(0, 2**32 - 1),
    epoch=st.integers(0, 2**16 - 1),
)
FLIGHT = Flight(
    "sess_1",
    "plugin_error",
    1_700_000_000.25,
    (Entry(0.5, Direction.INPUT, "Append", 1920, 960), Entry(0.6, Direction.EFFECT, "Delta")),
)


@given(st.lists(entries, max_size=20))
def test_a_recording_survives_being_written_and_read(kept: list[Entry]) -> None:
    flight = replace(FLIGHT, entries=tuple(kept))
    assert decode_flight(encode_flight(flight)) == flight


def test_the_header_names_format_and_version_and_lines_leave_defaults_out() -> None:
    header, first, second = encode_flight(FLIGHT).decode().splitlines()
    assert header.startswith('{"format":"duologue.flight","version":1,"session_id":"sess_1"')
    assert first == '{"at_s":0.5,"dir":"in","kind":"Append","bytes":1920,"sample":960}'
    assert second == '{"at_s":0.6,"dir":"out","kind":"Delta"}'


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no header"),
        (b'{"format":"other","version":1}\n', "no header"),
        (encode_flight(FLIGHT).replace(b'"version":1', b'"version":2'), "version 2; only 1"),
        (encode_flight(FLIGHT).rpartition(b'{"at_s"')[0], "1 of 2 entries"),
        (encode_flight(FLIGHT)[:-9], "cannot be read"),
    ],
)
def test_what_is_no_whole_recording_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CodecError, match=complaint):
        decode_flight(data)


def test_the_folder_keeps_the_newest_recordings(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    paths = []
    for number in range(4):
        path = write_flight(replace(FLIGHT, session_id=f"s{number}"), folder, max_files=10)
        os.utime(path, (number, number))
        paths.append(path)
    last = write_flight(FLIGHT, folder, max_files=3)
    assert sorted(folder.iterdir()) == sorted([*paths[2:], last])
    assert decode_flight(last.read_bytes()) == FLIGHT


def test_a_full_disk_is_told_and_leaves_no_half_recording(tmp_path: Path) -> None:
    whole = write_flight(replace(FLIGHT, session_id="whole"), tmp_path, max_files=1)
    half = tmp_path / write_flight(FLIGHT, tmp_path / "elsewhere", max_files=1).name
    half.symlink_to("/dev/full")
    with capture_logs() as logs:
        keep_flight(FLIGHT, tmp_path, max_files=1)
    assert [(entry["event"], entry["error"]) for entry in logs] == [
        ("flight_not_written", "No space left on device")
    ]
    assert [path for path in tmp_path.iterdir() if path.is_file()] == [whole]
    assert not half.is_symlink()
