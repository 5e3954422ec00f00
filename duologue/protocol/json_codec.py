"""The JSON form of commands and events, for the server's side and for the client's.

Audio is nearly all of the traffic, so an append and an audio delta have a path of their own: the
envelope is compared or written as bytes, only the base64 is worked on. Anything that does not look
exactly as expected takes the typed path, and both give the same result. This module must not know
sockets or sessions.
"""

from __future__ import annotations

import binascii
import functools
import operator
from collections.abc import Collection, Iterable
from typing import Any, get_args

import msgspec
import pybase64

from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command, CreateResponse, RealtimeCommand, UpdateSession
from duologue.protocol.dialect import HEADS_KEPT, Dialect
from duologue.protocol.events import STOCK_EVENTS, Event
from duologue.protocol.flat_fields import FlatCommand
from duologue.protocol.json_reading import (
    APPEND_HEAD,
    MAX_APPEND_BASE64_BYTES,
    WORTH_A_VIEW_BYTES,
    JsonForm,
    decode_base64,
    read_with_care,
    to_utf8,
)
from duologue.protocol.json_refusals import event_type, readable_event_id, refusal
from duologue.protocol.response_events import AudioDelta

_APPEND_HEAD_BYTES = len(APPEND_HEAD)
_MAX_TIDY_APPEND_BYTES = _APPEND_HEAD_BYTES + MAX_APPEND_BASE64_BYTES + 2
_CLOSING_BRACE = ord("}")

_encode_base64 = pybase64.b64encode
_decode_base64 = pybase64.b64decode


class _AppendWire(msgspec.Struct, tag="input_audio_buffer.append"):
    """An append whose base64 is still text: pybase64 decodes it five times as fast."""

    audio: msgspec.Raw
    event_id: str | None = None

    def text(self) -> tuple[msgspec.Raw, str, int]:
        return self.audio, "audio", 8 if self.event_id is None else 12

    def command(self, audio: bytes) -> AppendAudio:
        return AppendAudio(audio=audio, event_id=self.event_id)


class _DeltaWire(msgspec.Struct, tag="response.output_audio.delta"):
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: msgspec.Raw
    event_id: str = ""


class _EventHead(msgspec.Struct):
    event_id: str = ""


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a type that this version does not know; a client passes it by."""

    type: str
    raw: bytes
    """The whole message."""


def _union(members: Iterable[Any], *, without: Collection[type], plus: Iterable[type]) -> Any:
    kept = (member for member in members if member not in without)
    return functools.reduce(operator.or_, (*kept, *plus))


_COMMANDS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    _union(
        get_args(RealtimeCommand),
        without=(AppendAudio, UpdateSession, CreateResponse),
        plus=(_AppendWire, *get_args(FlatCommand)),
    )
)
_EVENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    _union(get_args(Event), without=(AudioDelta,), plus=(_DeltaWire,))
)
_EVENT_HEAD = msgspec.json.Decoder(_EventHead)
_EVENT_TYPES = frozenset(member.__struct_config__.tag for member in get_args(Event))
_ENCODER = msgspec.json.Encoder()


def _meaning(decoded: Any, message: bytes) -> Command:
    command: Command = decoded.command() if isinstance(decoded, FlatCommand) else decoded
    return command


_FORM = JsonForm(_COMMANDS, _AppendWire, _meaning)


def decode_command(message: bytes | str) -> Command:
    """Read one message from a client.

    Raises:
        ProtocolError: It is malformed. ``code`` is stable, ``param`` names the field and
            ``event_id`` is the client's own, where those can be told.
        LimitExceeded: Something in it is too large; same fields.
    """
    if isinstance(message, str):
        message = to_utf8(message)
    size = len(message)
    # A quote only at the very end: nothing follows the audio, and nothing in it is escaped.
    if (
        message.startswith(APPEND_HEAD)
        and message.find(b'"', _APPEND_HEAD_BYTES) == size - 2
        and message[-1] == _CLOSING_BRACE
        and size <= _MAX_TIDY_APPEND_BYTES
    ):
        text = message if size < WORTH_A_VIEW_BYTES else memoryview(message)
        try:
            return AppendAudio(audio=_decode_base64(text[_APPEND_HEAD_BYTES:-2], None, True))
        except binascii.Error:
            pass  # the typed path says what is wrong with it
    return read_with_care(message, _FORM)


def encode_event(event: Event, seq: int) -> bytes | None:
    """Write one message to a client, with its number as ``event_id``.

    Returns:
        None for an event that stock clients do not know: most stumble over one.
    """
    if type(event) is AudioDelta:
        head = audio_delta_head(
            event.response_id, event.item_id, event.output_index, event.content_index
        )
        number = str(seq).encode()
        audio = _encode_base64(event.delta)
        return b"".join((b'{"event_id":"event_', number, b'",', head, audio, b'"}'))
    if type(event) not in STOCK_EVENTS:
        return None
    return b'{"event_id":"event_%d",%b' % (seq, _ENCODER.encode(event)[1:])


@functools.lru_cache(maxsize=HEADS_KEPT)
def audio_delta_head(
    response_id: str, item_id: str, output_index: int, content_index: int
) -> bytes:
    """All of an audio delta between its number and its base64; the same for each of a part."""
    empty = AudioDelta(
        response_id=response_id,
        item_id=item_id,
        output_index=output_index,
        content_index=content_index,
        delta=b"",
    )
    return _ENCODER.encode(empty)[1:-2]


def encode_command(command: Command) -> bytes:
    """Write one message to a server."""
    if type(command) is AppendAudio and command.event_id is None:
        return b"".join((APPEND_HEAD, _encode_base64(command.audio), b'"}'))
    return _ENCODER.encode(command)


def decode_event(message: bytes | str) -> tuple[Event | UnknownEvent, str]:
    """Read one message from a server.

    Returns:
        The event, and its ``event_id``, empty where it has none.

    Raises:
        ProtocolError: It is malformed, or an event of a known type lacks a field.
    """
    if isinstance(message, str):
        message = to_utf8(message)
    try:
        event = _EVENTS.decode(message)
        if type(event) is _DeltaWire:
            return _audio_delta(event), event.event_id
        return event, _EVENT_HEAD.decode(message).event_id
    except (msgspec.MsgspecError, RecursionError) as exc:
        unknown = event_type(message)
        if unknown is None or unknown in _EVENT_TYPES:
            raise refusal(exc, message) from None
    return UnknownEvent(type=unknown, raw=message), readable_event_id(message) or ""


def _audio_delta(wire: _DeltaWire) -> AudioDelta:
    return AudioDelta(
        response_id=wire.response_id,
        item_id=wire.item_id,
        output_index=wire.output_index,
        content_index=wire.content_index,
        delta=decode_base64(wire.delta, "delta"),
    )


REALTIME_JSON = Dialect("realtime", decode_command, encode_event)
"""The Realtime dialect in JSON: what every stock client speaks."""
