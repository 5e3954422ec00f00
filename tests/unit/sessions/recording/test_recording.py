"""The recording of a whole call, as it lies in a file."""

from __future__ import annotations

import pytest

from duologue.core.errors import CodecError
from duologue.sessions.recording.packing import Content
from duologue.sessions.recording.recording import decode_recording, result_content, version_of
from duologue.telemetry import Flight, encode_flight
from tests.fakes.taped_call import MemoryTape, interrupted_call


@pytest.fixture(scope="module")
def data() -> bytes:
    memory = MemoryTape(content=False)
    interrupted_call(memory)
    return memory.data


def test_a_recording_says_how_the_call_began_and_what_was_done(data: bytes) -> None:
    recording = decode_recording(data)
    assert recording.header.served == "model"
    assert not recording.header.content
    assert not recording.cut_off
    assert recording.steps[0].call == "open"
    assert {step.call for step in recording.steps} == {"open", "apply", "pull", "on_timer", "close"}


def test_a_recording_that_breaks_off_is_read_up_to_there(data: bytes) -> None:
    recording = decode_recording(data[:-10])
    assert recording.cut_off
    assert len(recording.steps) == len(decode_recording(data).steps) - 1


def test_the_ring_of_a_crash_is_another_version() -> None:
    ring = encode_flight(Flight("s", "ValueError", 1.0, ()))
    assert version_of(ring) == 1
    with pytest.raises(CodecError, match="version 1; only 3"):
        decode_recording(ring)


@pytest.mark.parametrize(
    "wrong", [b"", b"nonsense", b"[]\n", b'{"format":"duologue.flight"}\n', b'{"format":"x"}']
)
def test_other_files_are_refused(wrong: bytes) -> None:
    with pytest.raises(CodecError):
        version_of(wrong)


def test_a_broken_line_in_the_middle_is_refused(data: bytes) -> None:
    first, rest = data.split(b"\n", 1)
    with pytest.raises(CodecError, match="a line"):
        decode_recording(first + b"\n{broken\n" + rest)


def test_results_hold_no_more_than_what_clients_got() -> None:
    assert result_content("pull", content=True) is Content.ALL
    assert result_content("apply", content=True) is Content.TEXT
    assert result_content("pull", content=False) is Content.NONE
