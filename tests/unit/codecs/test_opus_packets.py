from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.codecs.opus_packets import (
    duration_samples,
    join,
    packet_samples,
    split,
    without_front,
)
from duologue.core.errors import CodecError

MS_20 = b"\xf8\xff\xfe"
MS_10 = b"\xf0\xff\xfe"


def test_packets_say_how_long_they_last() -> None:
    assert (packet_samples(MS_20), packet_samples(MS_10)) == (960, 480)
    assert duration_samples([MS_20, MS_10]) == 1440
    assert packet_samples(b"") == packet_samples(b"\xfb") == 0


@given(st.lists(st.sampled_from([MS_10, MS_20, MS_20 * 300]), max_size=5))
def test_packets_survive_the_way(packets: list[bytes]) -> None:
    assert split(join(packets)) == packets


@pytest.mark.parametrize(
    "wire",
    [b"\x00", b"\x00\x00", b"\x00\x04" + MS_20, b"\x00\x03" + MS_20 + b"\x00", b"\x00\x01\xfb"],
)
def test_what_does_not_end_with_a_packet_is_none(wire: bytes) -> None:
    with pytest.raises(CodecError):
        split(wire)


def test_what_is_known_is_left_out_packet_by_packet() -> None:
    packets = [MS_20, MS_10, MS_20]
    assert without_front(packets, 0) == packets
    assert without_front(packets, 960) == packets[1:]
    assert without_front(packets, 1440) == packets[2:]
    assert without_front(packets, 10**6) == []
    with pytest.raises(CodecError):
        without_front(packets, 1000)
