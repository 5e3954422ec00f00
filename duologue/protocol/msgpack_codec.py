"""Any dialect in MessagePack: the same messages, one to a binary frame, with audio as bytes.

Audio takes a short way. All other commands are read by the dialect's JSON form, so that what is
allowed and how it is refused cannot differ. This module must not know sockets or sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.command_checks import check_event_id
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Dialect
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.duplex.wire_commands import AppendHints, placed_audio
from duologue.protocol.errors import ErrorCode, over_limit, refused
from duologue.protocol.events import STOCK_EVENTS, Event
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.protocol.msgpack_values import refuse_many_values
from duologue.protocol.response_events import ResponseCreated, ResponseDone

_FIXMAP = 0x80
"""First byte of a map, with the number of its pairs; of a longer one the form is another."""

_MAX_FIXMAP_PAIRS = 15

_ENCODER = msgspec.msgpack.Encoder()
_encode_json = msgspec.json.Encoder().encode


class _PlacedAppend(AppendHints, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    audio: bytes


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the messages of a client."""

    frequent: msgspec.msgpack.Decoder[Any]
    as_json: Callable[[bytes], Command]

    def __call__(self, message: bytes) -> Command:
        try:
            command = self.frequent.decode(message)
        except (msgspec.MsgspecError, RecursionError):
            return self.as_json(_in_json(message))
        try:
            return _checked(command)
        except ClientError as exc:
            exc.event_id = exc.event_id or command.event_id
            raise


def _checked(append: Any) -> Command:
    if append.event_id is not None:
        check_event_id(append.event_id)
    if type(append) is AcknowledgeEvents:
        return append
    if len(append.audio) > MAX_APPEND_BYTES:
        raise over_limit("audio", len(append.audio), MAX_APPEND_BYTES, "audio", "bytes")
    if type(append) is _PlacedAppend:
        return placed_audio(append, append.audio)
    audio: AppendAudio = append
    return audio


def _in_json(message: bytes) -> bytes:
    refuse_many_values(message)
    try:
        return _encode_json(msgspec.msgpack.decode(message))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise refused(
            f"the message is not MessagePack that could be JSON: {exc}",
            None,
            ErrorCode.INVALID_MSGPACK,
        ) from None


def encode_realtime(event: Event, seq: int) -> bytes | None:
    """Write one message to a client, with its number as ``event_id``; None: there is no such."""
    if type(event) not in STOCK_EVENTS:
        return None
    return _numbered(_ENCODER.encode(event), _EVENT_ID + _event_id(seq), 1)


def encode_duplex(event: Event, seq: int) -> bytes:
    """Write one message to a client, with its number."""
    head = _EVENT_ID + _event_id(seq)
    pairs = 1
    if seq:
        head += _SERVER_EVENT_SEQ + _ENCODER.encode(seq)
        pairs += 1
    if isinstance(event, ResponseCreated | ResponseDone):
        head += _RESPONSE_ID + _ENCODER.encode(event.response.id)
        pairs += 1
    return _numbered(_ENCODER.encode(event), head, pairs)


_EVENT_ID = _ENCODER.encode("event_id")
_SERVER_EVENT_SEQ = _ENCODER.encode("server_event_seq")
_RESPONSE_ID = _ENCODER.encode("response_id")


def _event_id(seq: int) -> bytes:
    return _ENCODER.encode(f"event_{seq}")


def _numbered(body: bytes, pairs: bytes, count: int) -> bytes:
    """Put pairs in front of those of an encoded map."""
    total = body[0] - _FIXMAP + count
    assert 0 < total <= _MAX_FIXMAP_PAIRS, "no event has so many fields"
    return b"".join((bytes((_FIXMAP | total,)), pairs, body[1:]))


REALTIME_MSGPACK = Dialect(
    "realtime",
    _Reader(msgspec.msgpack.Decoder(AppendAudio), REALTIME_JSON.decode_command),
    encode_realtime,
    binary=True,
)
"""The Realtime dialect in MessagePack; asked for by the subprotocol ``realtime.msgpack``."""

DUPLEX_MSGPACK = Dialect(
    "duplex",
    _Reader(msgspec.msgpack.Decoder(_PlacedAppend | AcknowledgeEvents), DUPLEX_JSON.decode_command),
    encode_duplex,
    binary=True,
)
"""The duplex dialect in MessagePack; asked for by the same subprotocol."""
