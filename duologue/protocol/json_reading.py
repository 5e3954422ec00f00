"""How a message of a client is read with care, in every dialect that is written in JSON.

What is not tidy comes this way: spaces, an ``event_id``, another order of keys, a long recording,
and everything that is no audio. A dialect is a table: its decoder, and what its messages mean.
This module must not know which dialects there are.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pybase64
from msgspec import UNSET, UnsetType

from duologue.core.errors import ClientError, ProtocolError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.command_checks import check_command, check_event_id
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.errors import ErrorCode, over_limit, refused
from duologue.protocol.json_integers import refuse_wide_integers
from duologue.protocol.json_refusals import (
    event_type,
    readable_event_id,
    refusal,
    refuse_duplicate_keys,
)
from duologue.protocol.json_values import refuse_many_json_values
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.protocol.second_reading import read_leniently

APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
"""How a tidy append begins."""

MAX_APPEND_BASE64_BYTES = (MAX_APPEND_BYTES + 2) // 3 * 4
WORTH_A_VIEW_BYTES = 64 * 1024
"""A longer message is not copied, nor looked through, where that can be helped."""

_NO_TEXT = b'""'
"""What stands for the audio in a message without it."""

_TELLING_BYTES = 64
"""The beginning of a text, with its quote: that rarely stands anywhere else."""

_QUOTE = ord('"')
_STRINGS = msgspec.json.Decoder(str)
_decode_base64 = pybase64.b64decode


class AppendWire(Protocol):
    """An append as a dialect writes it, its base64 still text: pybase64 reads that faster."""

    @property
    def event_id(self) -> str | None:
        """The client's own name for it."""

    @property
    def audio(self) -> msgspec.Raw | UnsetType:
        """What stands under that key."""

    def text(self) -> tuple[msgspec.Raw, str, int]:
        """Return the base64 with its quotes, its key, and how many quotes the message has.

        That is: with each field that has a value written once, and nothing else.

        Raises:
            ProtocolError: There is none.
        """

    def command(self, audio: bytes) -> AppendAudio:
        """Return the command.

        Raises:
            ProtocolError: What it says of its audio is wrong.
        """


def _no_other_names(message: bytes, named: str | None) -> bytes | None:
    return None


@dataclass(frozen=True, slots=True)
class JsonForm:
    """A dialect, as far as its messages are read.

    Args:
        commands: Reads any message; an append becomes an ``append``.
        append: The type of an append on the wire.
        meaning: Makes the command of what was read from a message.
        renamed: Returns a message, whose type has this name, under the name that ``commands``
            knows; ``None`` where it has no other.
    """

    commands: msgspec.json.Decoder[Any]
    append: type[AppendWire]
    meaning: Callable[[Any, bytes], Command]
    renamed: Callable[[bytes, str | None], bytes | None] = _no_other_names


def read_with_care(message: bytes, form: JsonForm) -> Command:
    """Read one message from a client.

    Raises:
        ProtocolError: It is malformed.
        LimitExceeded: Something in it is too large.
    """
    refuse_many_json_values(message)
    if (cut := _without_audio(message)) is not None:
        append = _long_append(*cut, form)
        if append is not None:
            return append
    try:
        decoded = form.commands.decode(message)
    except (msgspec.MsgspecError, RecursionError) as exc:
        decoded = _second_reading(message, exc, form)
    try:
        if type(decoded) is form.append:
            return _append(decoded, message)
        refuse_wide_integers(message)
        if type(decoded) is AcknowledgeEvents and message.count(b'"') == 6:
            return decoded  # two keys and a type: none of them stands twice
        refuse_duplicate_keys(message)
        command = form.meaning(decoded, message)
        check_command(command)
    except ClientError as exc:
        exc.event_id = exc.event_id or readable_event_id(message)
        raise
    except RecursionError as exc:
        raise refusal(exc, message) from None
    return command


def _without_audio(message: bytes) -> tuple[bytes, memoryview] | None:
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


def _long_append(rest: bytes, text: memoryview, form: JsonForm) -> AppendAudio | None:
    """Read an append without its audio; None: it is none, or not as it should be."""
    try:
        wire = form.commands.decode(rest)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if type(wire) is not form.append or wire.audio is UNSET or bytes(wire.audio) != _NO_TEXT:
        return None
    try:
        audio = decode_base64(text, "audio")
    except ClientError:
        return None  # the decoder has something to say first
    try:
        return _append(wire, rest, audio)
    except ClientError as exc:
        exc.event_id = exc.event_id or readable_event_id(rest)
        raise


def _append(wire: AppendWire, message: bytes, audio: bytes | None = None) -> AppendAudio:
    """Finish an append.

    Args:
        audio: Where the message is without it.
    """
    raw, name, expected = wire.text()
    # No key stands twice where there are no more quotes than these. The audio is skipped, and its
    # first quote with it, since to count is slower than to find.
    opening = message.find(b'"', message.find(b'"audio"') + len(b'"audio"'))
    closing = message.find(b'"', opening + 1)
    if message.count(b'"', 0, opening) + message.count(b'"', closing) != expected - 1:
        # The audio itself holds no keys: what is looked through is as short as other messages.
        start, end = _place(memoryview(raw), message)
        refuse_duplicate_keys(message[:start] + _NO_TEXT + message[end:] if end else message)
    if wire.event_id is not None:
        check_event_id(wire.event_id)
    return wire.command(decode_base64(raw, name) if audio is None else audio)


def _place(text: memoryview, message: bytes) -> tuple[int, int]:
    """Return where a string stands that is in a message; nowhere, if that is not quickly told.

    Told by its beginning and its length, since to compare all of a long one is slow.
    """
    head = bytes(text[:_TELLING_BYTES])
    start = message.find(head)
    while start >= 0 and message.find(b'"', start + 1) != start + len(text) - 1:
        start = message.find(head, start + 1)
    return (start, start + len(text)) if start >= 0 else (0, 0)


def _second_reading(message: bytes, exc: Exception, form: JsonForm) -> Any:
    """Other names of messages, and ways to write items and responses that do no harm."""
    if isinstance(exc, msgspec.ValidationError):
        named = event_type(message)
        try:
            renamed = form.renamed(message, named)
            if renamed is not None:
                return form.commands.decode(renamed)
            command = read_leniently(message, named)
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
