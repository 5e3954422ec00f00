"""Messages on a byte stream: each frame is a length and a MessagePack value.

Both ends batch: a frame holds all that one turn of a loop, or one step, had to say. This module
must not know what moves the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.messages import Apart, Beside, Freed, ReaderGone, Report, ToWorker, WorkerSpec

_LENGTH = struct.Struct("<I")
MAX_FRAME_BYTES = 64 * 1024 * 1024
"""A longer one is a broken stream, not a message."""

APART = 0xC1
"""First byte of a body that is of another kind: MessagePack begins nothing with it."""

_APART = bytes((APART,))


class NotWithin(Exception):
    """Something in a message is no part of it, and travels otherwise."""


def _refuse(value: object) -> None:
    raise NotWithin(type(value).__name__)


_encoder = msgspec.msgpack.Encoder(enc_hook=_refuse)
_decode_messages = msgspec.msgpack.Decoder(list[ToWorker]).decode
_decode_report = msgspec.msgpack.Decoder(Report).decode
_decode_apart = msgspec.msgpack.Decoder(Beside).decode
_decode_spec = msgspec.msgpack.Decoder(WorkerSpec).decode


def encode(value: Report | WorkerSpec) -> bytes:
    """Return the frame of one value.

    Raises:
        EngineError: It is longer than ``MAX_FRAME_BYTES``.
    """
    return frame(_encoder.encode(value), MAX_FRAME_BYTES)


def encode_messages(
    messages: Sequence[msgspec.Struct], limit_bytes: int = MAX_FRAME_BYTES
) -> bytes:
    """Return the frame of messages, or several frames where they do not fit into one.

    Raises:
        EngineError: One message alone is longer than ``limit_bytes``, or any holds what
            MessagePack cannot say, such as an integer beyond 64 bits.
        NotWithin: A payload has a part that lies elsewhere.
    """
    try:
        body = _encoder.encode(messages)
    except (msgspec.MsgspecError, OverflowError, TypeError, ValueError, RecursionError) as exc:
        raise EngineError(f"a message cannot be written: {exc}") from exc
    if len(body) > limit_bytes and len(messages) > 1:
        half = len(messages) // 2
        return b"".join(
            encode_messages(part, limit_bytes) for part in (messages[:half], messages[half:])
        )
    return frame(body, limit_bytes)


def encode_apart(message: Beside) -> bytes:
    """Return the frame of what the two ends of a link say to each other."""
    return frame(_APART + _encoder.encode(message))


def decode_apart(body: bytes) -> Apart | Freed:
    """Read such a body, which begins with ``APART``, of an end that is told of no other readers.

    Raises:
        EngineError: It is told of one.
    """
    message = decode_beside(body)
    if isinstance(message, ReaderGone):
        raise EngineError(f"{message.reader!r} is no reader of what lies here")
    return message


def decode_beside(body: bytes) -> Beside:
    """Read such a body."""
    return _decode_apart(memoryview(body)[1:])


def decode_messages(body: bytes) -> list[ToWorker]:
    """Read what the engine says to a worker."""
    return _decode_messages(body)


def decode_report(body: bytes) -> Report:
    """Read what a worker says to the engine."""
    return _decode_report(body)


def decode_spec(body: bytes) -> WorkerSpec:
    """Read the first frame that a worker gets."""
    return _decode_spec(body)


def frame(body: bytes, limit_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Return a frame around a body.

    Raises:
        EngineError: It is longer than ``limit_bytes``.
    """
    _check_length(len(body), limit_bytes)
    return _LENGTH.pack(len(body)) + body


def _check_length(length: int, limit_bytes: int) -> None:
    if length > limit_bytes:
        raise EngineError(f"a frame of {length} bytes; the limit is {limit_bytes}")


class FrameReader:
    """Cuts a byte stream into the bodies of its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies that ``data`` completed.

        Raises:
            EngineError: A length is nothing, or over ``MAX_FRAME_BYTES``.
        """
        # Most reads hold whole frames; only then is the copy into the buffer saved. A frame that
        # takes many reads is copied into it once, and out of it once.
        stream: bytes | bytearray = data
        if self._rest:
            self._rest += data
            stream = self._rest
        bodies = []
        start = 0
        while len(stream) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(stream, start)
            if not 0 < length <= MAX_FRAME_BYTES:
                raise EngineError(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
            end = start + _LENGTH.size + length
            if len(stream) < end:
                break
            if stream is data:
                bodies.append(data[start + _LENGTH.size : end])
            else:
                bodies.append(bytes(memoryview(stream)[start + _LENGTH.size : end]))
            start = end
        if stream is self._rest:
            del self._rest[:start]
        elif start < len(stream):
            self._rest += memoryview(stream)[start:]
        return bodies
