from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    OpusFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
)
from duologue.protocol.limits import MAX_INPUT_GAP_MS
from duologue.sessions.hearing.input_position import InputPosition

WIRE = PcmFormat(rate=16000)
PCM = b"\x01\x00\x02\x00\x03\x00"


def begun(at: int = 100, taken: int = 0) -> InputPosition:
    """A client whose first append starts at a sample of its choice."""
    position = InputPosition()
    position.took(position.place(b"", at, taken, WIRE))
    return position


def test_the_first_position_is_the_clients_choice() -> None:
    position = InputPosition()
    assert position.next_sample(5) == 0
    placed = position.place(PCM, 1000, 5, WIRE)
    assert placed.audio == PCM
    assert position.next_sample(5) == 0
    position.took(placed)
    assert position.next_sample(5 + 3) == 1003


@pytest.mark.parametrize(("start", "left"), [(103, PCM), (101, PCM[4:]), (100, b""), (90, b"")])
def test_what_is_known_is_left_out(start: int, left: bytes) -> None:
    position = begun()
    assert position.place(PCM, start, 3, WIRE).audio == left


def test_what_is_missing_is_silence_and_counted_once_it_was_taken() -> None:
    position = begun()
    placed = position.place(PCM, 105, 3, WIRE)
    assert placed.audio == bytes(4) + PCM
    assert position.missing == 0
    position.took(placed)
    assert position.missing == 2
    assert position.next_sample(3 + 2 + 3) == 108


@pytest.mark.parametrize(
    ("wire", "silence"),
    [(PcmuFormat(), b"\xff"), (PcmaFormat(), b"\xd5"), (FloatPcmFormat(), bytes(4))],
)
def test_silence_is_silence_in_every_format(wire: AudioFormat, silence: bytes) -> None:
    assert begun().place(b"", 101, 0, wire).audio == silence


def test_a_gap_that_nobody_would_wait_for_is_refused_with_a_way_out() -> None:
    position = begun()
    limit = MAX_INPUT_GAP_MS * 16
    position.place(b"", 100 + limit, 0, WIRE)
    with pytest.raises(ProtocolError) as caught:
        position.place(b"", 100 + limit + 16, 0, WIRE)
    assert caught.value.code == "input_audio_gap"
    assert caught.value.param == "start_sample"


def test_the_client_hears_every_second_how_far_the_session_is() -> None:
    position = begun(0)
    assert not position.report_due(15_999, 16000)
    assert position.report_due(16_000, 16000)
    assert not position.report_due(31_999, 16000)
    assert position.report_due(32_000, 16000)


MS_20 = b"\x00\x03\xf8\xff\xfe"
OPUS = OpusFormat(rate=24000)


def test_packets_that_are_known_are_left_out_whole() -> None:
    position = begun(0)
    assert position.place(MS_20 * 3, 0, 960, OPUS).audio == MS_20
    with pytest.raises(ProtocolError) as caught:
        position.place(MS_20 * 3, 0, 500, OPUS)
    assert caught.value.code == "undecodable_audio"


def test_between_packets_nothing_is_put_and_the_count_goes_on() -> None:
    position = begun(0)
    placed = position.place(MS_20, 1200, 960, OPUS)
    assert (placed.audio, placed.missing) == (MS_20, 240)
    position.took(placed)
    assert position.next_sample(960 + 480) == 1680
