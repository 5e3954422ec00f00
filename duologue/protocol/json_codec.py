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

from duologue.core.errors import ClientError, ProtocolError
from duologue.protocol.command_checks import check_command
from duologue.protocol.commands import (
    AppendAudio,
    Command,
    CreateResponse,
    RealtimeCommand,
    UpdateSession,
)
from duologue.protocol.dialect import HEADS_KEPT, Dialect
from duologue.protocol.errors import ErrorCode, over_limit, refused
from duologue.protocol.events import STOCK_EVENTS, Event
from duologue.protocol.flat_fields import FlatCommand
from duologue.protocol.json_refusals import (
    event_type,
    readable_event_id,
    refusal,
    refuse_duplicate_keys,
)
from duologue.protocol.json_values import refuse_many_json_values
from duologue.protocol.limits import MAX_APPEND_BYTES, MAX_EVENT_ID_CHARS
from duologue.protocol.response_events import AudioDelta
from duologue.protocol.second_reading import read_leniently

_APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
_APPEND_HEAD_BYTES = len(_APPEND_HEAD)
MAX_APPEND_BASE64_BYTES = (MAX_APPEND_BYTES + 2) // 3 * 4
_MAX_TIDY_APPEND_BYTES = _APPEND_HEAD_BYTES + MAX_APPEND_BASE64_BYTES + 2
WORTH_A_VIEW_BYTES = 64 * 1024
"""A longer message is not copied, nor looked through, where that can be helped."""

NO_TEXT = b'""'
"""What stands for the audio in a message without it."""

_CLOSING_BRACE = ord("}")
_QUOTE = ord('"')

_encode_base64 = pybase64.b64encode
_decode_base64 = pybase64.b64decode


class _AppendWire(msgspec.Struct, tag="input_audio_buffer.append"):
    """An append whose base64 is still text: pybase64 decodes it five times as fast."""

    audio: msgspec.Raw
    event_id: str | None = None


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
_STRINGS = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()


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
        message.startswith(_APPEND_HEAD)
        and message.find(b'"', _APPEND_HEAD_BYTES) == size - 2
        and message[-1] == _CLOSING_BRACE
        and size <= _MAX_TIDY_APPEND_BYTES
    ):
        text = message if size < WORTH_A_VIEW_BYTES else memoryview(message)
        try:
            return AppendAudio(audio=_decode_base64(text[_APPEND_HEAD_BYTES:-2], None, True))
        except binascii.Error:
            pass  # the typed path says what is wrong with it
    return _decode_typed(message)


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
        return b"".join((_APPEND_HEAD, _encode_base64(command.audio), b'"}'))
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


def _decode_typed(message: bytes) -> Command:
    refuse_many_json_values(message)
    if (cut := without_audio(message)) is not None:
        append = _long_append(*cut)
        if append is not None:
            return append
    try:
        decoded = _COMMANDS.decode(message)
    except (msgspec.MsgspecError, RecursionError) as exc:
        decoded = _second_reading(message, exc)
    try:
        if type(decoded) is _AppendWire:
            return _append(decoded, message)
        refuse_duplicate_keys(message)
        command: Command = decoded.command() if isinstance(decoded, FlatCommand) else decoded
        check_command(command)
    except ClientError as exc:
        exc.event_id = readable_event_id(message)
        raise
    return command


def without_audio(message: bytes) -> tuple[bytes, memoryview] | None:
    """Return a long message without its audio, and the audio, with its quotes.

    The decoder would look through all of the text, and hold everybody up for tens of milliseconds.

    Returns:
        None for a message that has no long text behind a key ``audio``.
    """
    if len(message) < WORTH_A_VIEW_BYTES:
        return None
    opening = message.find(b'"', message.find(b'"audio"') + len(b'"audio"'))
    closing = message.find(b'"', opening + 1)
    if closing - opening < WORTH_A_VIEW_BYTES:
        return None
    rest = message[: opening + 1] + message[closing:]
    return rest, memoryview(message)[opening : closing + 1]


def _long_append(rest: bytes, text: memoryview) -> AppendAudio | None:
    """Read an append without its audio; None: it is none, or not as it should be."""
    try:
        wire = _COMMANDS.decode(rest)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if type(wire) is not _AppendWire or bytes(wire.audio) != NO_TEXT:
        return None
    try:
        audio = decode_base64(text, "audio")
    except ClientError:
        return None  # the decoder has something to say first
    try:
        return _append(wire, rest, audio)
    except ClientError as exc:
        exc.event_id = readable_event_id(rest)
        raise


def _append(wire: _AppendWire, message: bytes, audio: bytes | None = None) -> AppendAudio:
    """Finish an append that has spaces, an ``event_id`` or another order of keys.

    Args:
        audio: Where the message is without it.
    """
    key_end = message.find(b'"audio"') + len(b'"audio"')
    opening = message.find(b'"', key_end)
    envelope = message[:opening] + message[message.find(b'"', opening + 1) :]
    # Four quotes a field, less the two around the audio: no key stands twice, nothing is foreign.
    if envelope.count(b'"') != (7 if wire.event_id is None else 11):
        refuse_duplicate_keys(message)
    if wire.event_id is not None and len(wire.event_id) > MAX_EVENT_ID_CHARS:
        size = len(wire.event_id)
        raise over_limit("event_id", size, MAX_EVENT_ID_CHARS, "event_id", "characters")
    if audio is None:
        audio = decode_base64(wire.audio, "audio")
    return AppendAudio(audio=audio, event_id=wire.event_id)


def _second_reading(message: bytes, exc: Exception) -> Command:
    """Some clients write items and responses in a way of their own that does no harm."""
    if isinstance(exc, msgspec.ValidationError):
        try:
            command = read_leniently(message, event_type(message))
        except (msgspec.MsgspecError, RecursionError) as also:
            raise refusal(also, message) from None
        if command is not None:
            return command
    raise refusal(exc, message) from None


def decode_base64(raw: msgspec.Raw | memoryview, param: str) -> bytes:
    """Decode the base64 of a JSON string that has not been read yet.

    Raises:
        ProtocolError: It is no string, or no base64.
        LimitExceeded: It is too long.
    """
    # A view, since each copy of what may be 20 MB takes milliseconds.
    text = memoryview(raw)
    if text[0] != _QUOTE:
        raise refused(f"{param} is not a string; give base64", param)
    if len(text) - 2 > MAX_APPEND_BASE64_BYTES:
        raise over_limit(param, (len(text) - 2) // 4 * 3, MAX_APPEND_BYTES, param, "bytes")
    try:
        return _decode_base64(text[1:-1], None, True)
    except binascii.Error as exc:
        # Some encoders escape the slash, which is part of the alphabet.
        if b"\\" not in bytes(text):
            raise _bad_base64(param) from exc
    try:
        return _decode_base64(_unescaped(raw, param), None, True)
    except binascii.Error as exc:
        raise _bad_base64(param) from exc


def _unescaped(text: msgspec.Raw | memoryview, param: str) -> bytes:
    try:
        return _STRINGS.decode(text).encode("ascii")
    except (msgspec.MsgspecError, UnicodeEncodeError) as exc:
        raise _bad_base64(param) from exc


def _bad_base64(param: str) -> ProtocolError:
    return refused(
        f"{param} is not base64: give the standard alphabet with padding, without whitespace",
        param,
        ErrorCode.INVALID_BASE64,
    )


def to_utf8(message: str) -> bytes:
    """Return the bytes of a message that came as text.

    Raises:
        ProtocolError: It is no text that could be sent.
    """
    try:
        return message.encode()
    except UnicodeEncodeError:
        raise refused("the message holds a lone surrogate", None, ErrorCode.INVALID_JSON) from None


REALTIME_JSON = Dialect("realtime", decode_command, encode_event)
"""The Realtime dialect in JSON: what every stock client speaks."""
