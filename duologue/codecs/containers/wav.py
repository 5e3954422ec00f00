"""RIFF WAVE: the header that goes before PCM, and PCM out of plain files.

This module must not know other containers.

Source:
    Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft, 1991), chapter 3;
    WAVE_FORMAT_EXTENSIBLE.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from duologue.core.audio import SAMPLE_BYTES

UNKNOWN_SIZE = 0xFFFFFFFF
"""What a header says while nobody knows how much will follow."""

HEADER_BYTES = 44

_CHUNK = struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_PCM, _EXTENSIBLE = 0x0001, 0xFFFE
_LEAST_RATE_HZ, _MOST_RATE_HZ = 4000, 384_000


def wav_header(rate_hz: int, data_bytes: int | None = None, channels: int = 1) -> bytes:
    """Return the header of an s16le file.

    Args:
        data_bytes: Length of the PCM; none where it is not known yet.
    """
    data = UNKNOWN_SIZE if data_bytes is None else data_bytes
    riff = UNKNOWN_SIZE if data_bytes is None else HEADER_BYTES - _CHUNK.size + data_bytes
    frame = channels * SAMPLE_BYTES
    fields = _FORMAT.pack(_PCM, channels, rate_hz, rate_hz * frame, frame, 8 * SAMPLE_BYTES)
    return b"".join(
        (
            _CHUNK.pack(b"RIFF", riff),
            b"WAVE",
            _CHUNK.pack(b"fmt ", len(fields)),
            fields,
            _CHUNK.pack(b"data", data),
        )
    )


def write_sizes(file: bytearray) -> None:
    """Put its sizes into the header of a file that was begun without knowing them."""
    _CHUNK.pack_into(file, 0, b"RIFF", len(file) - _CHUNK.size)
    _CHUNK.pack_into(file, HEADER_BYTES - _CHUNK.size, b"data", len(file) - HEADER_BYTES)


@dataclass(frozen=True, slots=True)
class PlainWav:
    """A file of 16-bit PCM.

    Shapes:
        pcm: [samples, channels] s16le, whole samples only
    """

    rate_hz: int
    channels: int
    pcm: memoryview


def read_plain_wav(data: bytes) -> PlainWav | None:
    """Return what is in a file of 16-bit PCM, or nothing where it is another kind of file.

    Sizes are not believed: a stream's header does not know them, and a file may have been cut off.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    view = memoryview(data)
    rate_hz = channels = 0
    start = 12
    while start + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, start)
        body = view[start + _CHUNK.size : start + _CHUNK.size + size]
        if name == b"fmt " and len(body) >= _FORMAT.size:
            kind, channels, rate_hz, _, block, bits = _FORMAT.unpack_from(body)
            if kind == _EXTENSIBLE and len(body) >= 26:
                (kind,) = struct.unpack_from("<H", body, 24)
            is_plain = kind == _PCM and bits == 8 * SAMPLE_BYTES
            if not is_plain or not channels or block != channels * SAMPLE_BYTES:
                return None
        elif name == b"data":
            if not channels or not _LEAST_RATE_HZ <= rate_hz <= _MOST_RATE_HZ:
                return None
            whole = len(body) - len(body) % (channels * SAMPLE_BYTES)
            return PlainWav(rate_hz, channels, body[:whole])
        start += _CHUNK.size + size + size % 2
    return None
