"""Opus packets as messages carry them: several to a message, each after its length.

This module must not know the codec.

Source:
    RFC 6716, section 3.1 (how long a packet lasts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duologue.core.errors import CodecError

CLOCK_HZ = 48_000
"""Opus counts time in samples of this rate, whatever the audio's own rate is."""

LENGTH_BYTES = 2
"""Before each packet stands its length, big-endian."""


def packet_samples(packet: bytes) -> int:
    """Return how long a packet lasts, in samples of 48 kHz; 0 for one that is malformed."""
    if not packet:
        return 0
    config, code = packet[0] >> 3, packet[0] & 3
    if config < 12:
        frame = (480, 960, 1920, 2880)[config & 3]
    elif config < 16:
        frame = (480, 960)[config & 1]
    else:
        frame = (120, 240, 480, 960)[config & 3]
    if code < 3:
        return frame * (1 if code == 0 else 2)
    return frame * (packet[1] & 63) if len(packet) > 1 else 0


def join(packets: Iterable[bytes]) -> bytes:
    """Return packets as one run of bytes."""
    return b"".join(
        piece for packet in packets for piece in (len(packet).to_bytes(LENGTH_BYTES), packet)
    )


def split(wire: bytes) -> list[bytes]:
    """Return the packets in a run of bytes.

    Raises:
        CodecError: It does not end with a packet, or holds something that is none.
    """
    packets: list[bytes] = []
    place = 0
    while place < len(wire):
        start = place + LENGTH_BYTES
        place = start + int.from_bytes(wire[start - LENGTH_BYTES : start])
        packet = wire[start:place]
        if place > len(wire) or not packet_samples(packet):
            raise CodecError(
                f"packet {len(packets)} is no Opus packet: give whole packets, each after its "
                "length in two bytes, big-endian"
            )
        packets.append(packet)
    return packets


def duration_samples(packets: Sequence[bytes]) -> int:
    """Return how long packets last together, in samples of 48 kHz."""
    return sum(map(packet_samples, packets))


def without_front(packets: Sequence[bytes], samples: int) -> list[bytes]:
    """Leave out the packets that make up the first ``samples`` of 48 kHz.

    Raises:
        CodecError: That is in the middle of a packet.
    """
    for index, packet in enumerate(packets):
        if samples <= 0:
            return list(packets[index:])
        samples -= packet_samples(packet)
        if samples < 0:
            raise CodecError("what was sent again begins in the middle of a packet")
    return []
