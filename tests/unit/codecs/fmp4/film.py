"""A film whose pictures and sound are known, and a look at the boxes of what was written."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from duologue.codecs.pictures import Pixels

CONTAINERS = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"mvex", b"moof", b"traf", b"edts")


def pictures(count: int, width: int = 64, height: int = 48) -> list[Pixels]:
    """Each is of one grey, a little lighter than the one before."""
    return [np.full((height, width, 3), 20 + 4 * number, np.uint8) for number in range(count)]


def tone(samples: int, rate_hz: int, start: int = 0) -> NDArray[np.float32]:
    at = (np.arange(samples) + start) / rate_hz
    return (0.3 * np.sin(2 * np.pi * 440 * at)).astype(np.float32)[None]


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of each box, those in others after these."""
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        assert 8 <= size <= len(data) - at, "boxes are whole"
        body = data[at + 8 : at + size]
        yield kind, body
        if kind in CONTAINERS:
            yield from boxes(body)
        at += size
