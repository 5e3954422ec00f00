"""RTP packets: read from the wire, put in order, and written.

For libraries that hand packets through as they are. This module must not know codecs or sockets.

Source:
    RFC 3550, sections 5.1, 5.3.1 and A.1; RFC 5761, section 4 (telling RTCP apart).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HELD_PACKETS = 4
"""Packets that wait for one that is missing: 80 ms. It comes by then, or it is lost."""

MAX_LOST_PACKETS = 50
"""Missing ones in a row that are counted as lost; further apart, the stream has begun anew."""

_FIXED = struct.Struct("!BBHII")
_SEQUENCE_MASK = 0xFFFF
_TIMESTAMP_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class RtpPacket:
    """One packet.

    Units:
        ``timestamp`` counts the codec's RTP clock, modulo 2**32.
    """

    payload_type: int
    sequence: int
    timestamp: int
    payload: bytes


def read_rtp(datagram: bytes) -> RtpPacket | None:
    """Return the packet, or ``None`` for RTCP and for what is no RTP."""
    if len(datagram) < _FIXED.size or datagram[0] >> 6 != 2 or 192 <= datagram[1] <= 223:
        return None
    first, second, sequence, timestamp, _ = _FIXED.unpack_from(datagram)
    start = _FIXED.size + 4 * (first & 0x0F)
    end = len(datagram)
    if first & 0x10:
        if end < start + 4:
            return None
        start += 4 + 4 * int.from_bytes(datagram[start + 2 : start + 4], "big")
    if first & 0x20:
        end -= datagram[-1]
    if start >= end:
        return None
    return RtpPacket(second & 0x7F, sequence, timestamp, datagram[start:end])


class RtpWriter:
    """Numbers the packets of one stream.

    Args:
        first: Sequence number of the first packet, and offset of all timestamps: random, so that
            nobody can guess them.
    """

    def __init__(self, payload_type: int, ssrc: int, first: int) -> None:
        self._payload_type = payload_type
        self._ssrc = ssrc
        # Half of the range, or the first wrap-around may be taken for a loss by the cipher.
        self._sequence = first & 0x7FFF
        self._offset = first

    def write(self, payload: bytes, timestamp: int) -> bytes:
        """Return the next packet."""
        header = _FIXED.pack(
            0x80,
            self._payload_type,
            self._sequence,
            (timestamp + self._offset) & _TIMESTAMP_MASK,
            self._ssrc,
        )
        self._sequence = (self._sequence + 1) & _SEQUENCE_MASK
        return header + payload


class ReorderBuffer:
    """Puts packets in order; one that comes in order passes at once."""

    def __init__(self) -> None:
        self.lost = 0
        self.late = 0
        """Packets that came twice, or after they were given up."""
        self._next: int | None = None
        self._held: dict[int, RtpPacket] = {}

    def put(self, packet: RtpPacket) -> list[RtpPacket | None]:
        """Take a packet; return what is next in the stream now, ``None`` for each lost one."""
        if self._next is None:
            self._next = packet.sequence
        ahead = (packet.sequence - self._next) & _SEQUENCE_MASK
        if ahead > MAX_LOST_PACKETS + HELD_PACKETS:
            if ahead > _SEQUENCE_MASK - MAX_LOST_PACKETS:
                self.late += 1
                return []
            # The peer has begun anew, as after a long silence: nothing between is worth a wait.
            self._held.clear()
            self._next = packet.sequence
        self._held[packet.sequence] = packet
        ordered: list[RtpPacket | None] = self._in_order()
        while len(self._held) > HELD_PACKETS:
            self.lost += 1
            ordered.append(None)
            self._next = (self._next + 1) & _SEQUENCE_MASK
            ordered += self._in_order()
        return ordered

    def _in_order(self) -> list[RtpPacket | None]:
        ordered: list[RtpPacket | None] = []
        assert self._next is not None
        while (packet := self._held.pop(self._next, None)) is not None:
            ordered.append(packet)
            self._next = (self._next + 1) & _SEQUENCE_MASK
        return ordered


class Timeline:
    """Finds the time that is missing between packets."""

    def __init__(self, clock_hz: int, max_gap_s: float = 1.0) -> None:
        self._max_gap = int(clock_hz * max_gap_s)
        self._expected: int | None = None

    def gap_before(self, timestamp: int, samples: int) -> int:
        """Return how many samples are missing before a packet of ``samples``.

        A peer may leave out silence. Where more is missing than can be believed, or less than
        nothing, time goes on from the packet.
        """
        expected = timestamp if self._expected is None else self._expected
        self._expected = (timestamp + samples) & _TIMESTAMP_MASK
        gap = (timestamp - expected) & _TIMESTAMP_MASK
        return gap if gap <= self._max_gap else 0

    def skip(self, samples: int) -> None:
        """Count samples that were made up in place of a lost packet."""
        if self._expected is not None:
            self._expected = (self._expected + samples) & _TIMESTAMP_MASK
