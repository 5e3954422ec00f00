from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Append,
    Cancel,
    Died,
    Finish,
    Grant,
    JobEnded,
    JobOutput,
    JobTaken,
    Open,
    ReaderGone,
    Ready,
    Report,
    Stop,
    ToWorker,
    WorkerSpec,
)
from duologue.engines.payloads import AudioChunk, TextDelta, VoiceActivity
from duologue.engines.ports import Outcome, WorkClass

TO_WORKER: list[ToWorker] = [
    Open("a", AudioChunk(b"\x00\xff", 16_000, 7), input_ended=False, credit=3, taken_at_once=True),
    Append("a", TextDelta("schön")),
    Grant("a", 40),
    Finish("a"),
    Cancel("a"),
    Stop(),
]


def body(frame: bytes) -> bytes:
    (only,) = framing.FrameReader().feed(frame)
    return only


def test_what_is_said_to_a_worker_arrives_as_it_was() -> None:
    assert framing.decode_messages(body(framing.encode_messages(TO_WORKER))) == TO_WORKER


def test_what_a_worker_says_arrives_as_it_was() -> None:
    report = Report(
        [
            Ready(0.5),
            JobOutput("a", VoiceActivity(0.25, 640)),
            JobTaken("a", 2, 600),
            JobEnded("a", Outcome.FAILED, "stage_failed", "bad input"),
            Died("worker_crashed", "ValueError at x.py:3"),
        ],
        step_s=0.125,
    )
    assert framing.decode_report(body(framing.encode(report))) == report


def test_a_specification_arrives_as_it_was() -> None:
    spec = WorkerSpec(
        name="tts/0",
        runner="tone",
        settings={"chunk_ms": [100], "fault": {"kind": "raise"}},
        work_class=WorkClass.BATCH,
        env={"A": "1"},
    )
    assert framing.decode_spec(body(framing.encode(spec))) == spec


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        framing.decode_messages(msgspec.msgpack.encode([["Explode", "a"]]))


@given(
    st.lists(st.binary(min_size=1, max_size=300), max_size=8),
    st.lists(st.integers(1, 400), min_size=1),
)
def test_frames_are_found_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(struct.pack("<I", len(each)) + each for each in bodies)
    reader = framing.FrameReader()
    found: list[bytes] = []
    position = 0
    turn = 0
    while position < len(stream):
        size = cuts[turn % len(cuts)]
        found += reader.feed(stream[position : position + size])
        position += size
        turn += 1
    assert found == bodies


def test_a_length_beyond_the_limit_is_a_broken_stream() -> None:
    with pytest.raises(EngineError, match=str(framing.MAX_FRAME_BYTES)):
        framing.FrameReader().feed(struct.pack("<I", framing.MAX_FRAME_BYTES + 1))


def test_messages_that_do_not_fit_into_one_frame_are_several() -> None:
    messages = [Append("a", TextDelta(str(number) * 90)) for number in range(5)] * 10
    bodies = framing.FrameReader().feed(framing.encode_messages(messages, limit_bytes=1000))
    assert max(len(body) for body in bodies) <= 1000
    assert [each for body in bodies for each in framing.decode_messages(body)] == messages


def test_a_message_that_fits_into_no_frame_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"a frame of 10\d\d bytes; the limit is 1000"):
        framing.encode_messages([Cancel("a"), Append("a", TextDelta("x" * 1000))], 1000)


def test_what_messagepack_cannot_say_is_an_error_of_its_message() -> None:
    with pytest.raises(EngineError, match="cannot be written"):
        framing.encode_messages([Cancel("a"), Grant("a", 10**30)])


def test_a_long_frame_costs_no_more_than_its_length() -> None:
    """Its pieces are copied once, not again with every piece that follows."""
    frame = framing.encode_messages([Append("a", AudioChunk(bytes(16 * 2**20), 16_000))])
    reader = framing.FrameReader()
    clock = SystemClock()
    before = clock.cpu_time()
    bodies = []
    for start in range(0, len(frame), 1024):
        bodies += reader.feed(frame[start : start + 1024])
    # 16,384 pieces: 0.1 s, and 20 s if each one copied all before it.
    assert clock.cpu_time() - before < 3
    assert len(bodies) == 1


def test_a_frame_of_nothing_is_a_broken_stream() -> None:
    with pytest.raises(EngineError, match="a frame of 0 bytes"):
        framing.FrameReader().feed(bytes(4))


def test_only_ends_that_have_other_readers_are_told_of_them() -> None:
    body = framing.encode_apart(ReaderGone("tts/1 reads"))[4:]
    assert framing.decode_beside(body) == ReaderGone("tts/1 reads")
    with pytest.raises(EngineError, match="tts/1 reads"):
        framing.decode_apart(body)
