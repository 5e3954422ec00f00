from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.webrtc.rtp import (
    HELD_PACKETS,
    MAX_LOST_PACKETS,
    ReorderBuffer,
    RtpPacket,
    RtpWriter,
    Timeline,
    read_rtp,
)


def packet(sequence: int) -> RtpPacket:
    return RtpPacket(111, sequence & 0xFFFF, 960 * sequence & 0xFFFFFFFF, b"x")


def through(order: ReorderBuffer, *sequences: int) -> list[int | None]:
    return [
        None if each is None else each.sequence
        for sequence in sequences
        for each in order.put(packet(sequence))
    ]


def test_what_is_written_can_be_read() -> None:
    writer = RtpWriter(111, ssrc=7, first=0xFFFF_FFFF)
    first, second = (read_rtp(writer.write(b"hello", 960 * n)) for n in range(2))
    assert first is not None
    assert second is not None
    assert (first.payload_type, first.payload) == (111, b"hello")
    assert second.sequence - first.sequence == 1
    assert (second.timestamp - first.timestamp) & 0xFFFFFFFF == 960


def test_numbers_wrap_around() -> None:
    writer = RtpWriter(0, ssrc=7, first=0x7FFF)
    sequences = [read_rtp(writer.write(b"x", 0)) for _ in range(40_000)]
    numbers = [each.sequence for each in sequences if each is not None]
    assert numbers[0] == 0x7FFF
    assert all((b - a) & 0xFFFF == 1 for a, b in pairwise(numbers))


def test_sources_extensions_and_padding_are_skipped() -> None:
    fixed = struct.pack("!BBHII", 0xB2, 0x80 | 111, 5, 6, 7)
    sources = bytes(8)
    extension = struct.pack("!HH", 0xBEDE, 1) + b"\x10\xff\0\0"
    read = read_rtp(fixed + sources + extension + b"payload" + b"\0\0\3")
    assert read == RtpPacket(111, 5, 6, b"payload")


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\x80",
        bytes(12),  # version 0
        b"\x80\xc8" + bytes(20),  # RTCP
        b"\x80\x6f" + bytes(10),  # no payload
        b"\x90\x6f" + bytes(10) + b"\0\0\xff\xff",  # an extension longer than the packet
        b"\xa0\x6f" + bytes(10) + b"x\xff",  # more padding than packet
        b"\x90\x6f" + bytes(12),  # half an extension
    ],
)
def test_what_is_no_rtp_is_ignored(datagram: bytes) -> None:
    assert read_rtp(datagram) is None


@given(st.binary(max_size=64))
def test_any_bytes_are_a_packet_or_none(datagram: bytes) -> None:
    read = read_rtp(datagram)
    assert read is None or read.payload


def test_packets_in_order_pass_at_once_whatever_the_first_number() -> None:
    assert through(ReorderBuffer(), 65_534, 65_535, 65_536, 65_537) == [65_534, 65_535, 0, 1]


def test_packets_out_of_order_are_put_in_order() -> None:
    order = ReorderBuffer()
    assert through(order, 1, 3, 4) == [1]
    assert through(order, 2) == [2, 3, 4]
    assert order.lost == 0


def test_a_packet_that_stays_away_is_given_up() -> None:
    order = ReorderBuffer()
    through(order, 1)
    assert through(order, *range(3, 3 + HELD_PACKETS)) == []
    assert through(order, 3 + HELD_PACKETS) == [None, *range(3, 4 + HELD_PACKETS)]
    assert order.lost == 1
    assert through(order, 2) == []
    assert order.late == 1


def test_a_packet_that_comes_twice_counts_once() -> None:
    order = ReorderBuffer()
    assert through(order, 1, 1, 2, 2) == [1, 2]
    assert order.late == 2


def test_many_lost_packets_in_a_row_are_counted() -> None:
    order = ReorderBuffer()
    through(order, 1)
    got = through(order, *range(12, 13 + HELD_PACKETS))
    assert got == [None] * 10 + list(range(12, 13 + HELD_PACKETS))


def test_a_stream_that_begins_anew_is_followed_without_making_up_the_gap() -> None:
    order = ReorderBuffer()
    through(order, 1)
    far = MAX_LOST_PACKETS + HELD_PACKETS + 10
    assert through(order, far, far + 1) == [far, far + 1]
    assert order.lost == 0


@given(st.permutations(range(12)), st.sets(st.integers(0, 11), max_size=4))
def test_what_comes_out_is_in_order_and_nothing_is_held_for_good(
    arrival: list[int], missing: set[int]
) -> None:
    order = ReorderBuffer()
    got = through(order, 100, *(101 + n for n in arrival if n not in missing))
    got += through(order, *range(200 - 60, 200 - 60 + 1))
    numbers = [n for n in got if n is not None]
    assert numbers == sorted(numbers)


def test_time_that_is_missing_is_found() -> None:
    line = Timeline(48_000)
    assert line.gap_before(0xFFFF_FFFF - 959, 960) == 0
    assert line.gap_before(0, 960) == 0
    assert line.gap_before(960 + 480, 960) == 480
    line.skip(960)
    assert line.gap_before(960 + 480 + 960 + 960, 960) == 0


@pytest.mark.parametrize("jump", [48_001, -960, 10_000_000])
def test_time_that_cannot_be_believed_begins_anew(jump: int) -> None:
    line = Timeline(48_000)
    line.gap_before(0, 960)
    assert line.gap_before(960 + jump & 0xFFFFFFFF, 960) == 0
    assert line.gap_before(1920 + jump & 0xFFFFFFFF, 960) == 0
