"""Messages on a byte stream: each frame is a length and a MessagePack value.

Both ends batch: a frame holds all that one turn of a loop, or one step, had to say. This module
must not know what moves the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.messages import Report, ToWorker, WorkerSpec

_LENGTH = struct.Struct("<I")
MAX_FRAME_BYTES = 64 * 1024 * 1024
"""A longer one is a broken stream, not a message."""

_encoder = msgspec.msgpack.Encoder()
_decode_messages = msgspec.msgpack.Decoder(list[ToWorker]).decode
_decode_report = msgspec.msgpack.Decoder(Report).decode
_decode_spec = msgspec.msgpack.Decoder(WorkerSpec).decode


def encode(value: Sequence[ToWorker] | Report | WorkerSpec) -> bytes:
    """Return the frame of one value."""
    body = _encoder.encode(value)
    return _LENGTH.pack(len(body)) + body


def decode_messages(body: bytes) -> list[ToWorker]:
    """Read what the engine says to a worker."""
    return _decode_messages(body)


def decode_report(body: bytes) -> Report:
    """Read what a worker says to the engine."""
    return _decode_report(body)


def decode_spec(body: bytes) -> WorkerSpec:
    """Read the first frame that a worker gets."""
    return _decode_spec(body)


class FrameReader:
    """Cuts a byte stream into the bodies of its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies that ``data`` completed.

        Raises:
            EngineError: A length is over ``MAX_FRAME_BYTES``.
        """
        # Most reads hold whole frames; only then is the copy into the buffer saved.
        stream: bytes | bytearray = data
        if self._rest:
            self._rest += data
            stream = self._rest
        bodies = []
        start = 0
        while len(stream) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(stream, start)
            if length > MAX_FRAME_BYTES:
                raise EngineError(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
            end = start + _LENGTH.size + length
            if len(stream) < end:
                break
            bodies.append(bytes(stream[start + _LENGTH.size : end]))
            start = end
        self._rest = bytearray(stream[start:])
        return bodies
