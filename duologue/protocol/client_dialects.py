"""The dialects as a client writes and reads them: the other half of ``dialects``.

This module must not know sockets, nor how a client asks for a dialect.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET

from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.dialect import Encoding
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import (
    Event,
    ResumableSessionCreated,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.json_codec import UnknownEvent, decode_event, encode_command

ClientFamily: TypeAlias = Literal["realtime", "duplex"]
"""What a client of ours speaks: the Realtime API, or the duplex dialect."""

Numbered: TypeAlias = tuple[Event | UnknownEvent, int | None]
"""An event and its number in the session; ``None`` where the server gives none."""

_NUMBER = re.compile(r"event_(\d{1,18})\Z")


@dataclass(frozen=True, slots=True)
class ClientDialect:
    """The two functions that a client's connection needs.

    Args:
        encode_command: Writes one message to the server.
        decode_event: Reads one message of the server; raises ``ProtocolError``.
        binary: Messages go out in binary frames, else in text frames.
    """

    name: str
    encode_command: Callable[[Command], bytes]
    decode_event: Callable[[bytes], Numbered]
    binary: bool = False


class _Created(msgspec.Struct, frozen=True, kw_only=True, tag="session.created"):
    session: DuplexSessionResource


class _Updated(msgspec.Struct, frozen=True, kw_only=True, tag="session.updated"):
    session: DuplexSessionResource


class _Token(msgspec.Struct, frozen=True, kw_only=True):
    resume_token: str | None = None
    attachment_generation: int = 1
    continues: str | None = None
    next_sample: int | None = None
    last_event_id: str | None = None


class _Head(msgspec.Struct):
    """``type`` is not required, so that what is wrong with a message is said by its own decoder."""

    type: str = ""
    event_id: str = ""
    server_event_seq: int | None = None


_encode_json = msgspec.json.Encoder().encode
_encode_msgpack = msgspec.msgpack.Encoder().encode
_SESSION_JSON = msgspec.json.Decoder(_Created | _Updated)
_SESSION_MSGPACK = msgspec.msgpack.Decoder(_Created | _Updated)
_TOKEN_JSON = msgspec.json.Decoder(_Token)
_TOKEN_MSGPACK = msgspec.msgpack.Decoder(_Token)
_HEAD_JSON = msgspec.json.Decoder(_Head)
_HEAD_MSGPACK = msgspec.msgpack.Decoder(_Head)
_EVENTS_MSGPACK: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    functools.reduce(operator.or_, get_args(Event))
)
_EVENT_TYPES = frozenset(member.__struct_config__.tag for member in get_args(Event))


def _realtime_from_json(message: bytes) -> Numbered:
    event, event_id = decode_event(message)
    if isinstance(event, SessionCreated):
        event = _with_token(event, _TOKEN_JSON.decode(message))
    return event, _number(event_id)


def _duplex_from_json(message: bytes) -> Numbered:
    event, event_id = decode_event(message)
    if isinstance(event, SessionCreated | SessionUpdated):
        event = _with_session(event, _SESSION_JSON, message)
    if isinstance(event, SessionCreated):
        event = _with_token(event, _TOKEN_JSON.decode(message))
    seq = _number(event_id)
    return event, _HEAD_JSON.decode(message).server_event_seq if seq is None else seq


def _realtime_from_msgpack(message: bytes) -> Numbered:
    try:
        event = _EVENTS_MSGPACK.decode(message)
        if isinstance(event, SessionCreated):
            event = _with_token(event, _TOKEN_MSGPACK.decode(message))
        return event, _number(_HEAD_MSGPACK.decode(message).event_id)
    except (msgspec.MsgspecError, RecursionError) as exc:
        return _unknown(message, exc)


def _duplex_from_msgpack(message: bytes) -> Numbered:
    event, seq = _realtime_from_msgpack(message)
    if isinstance(event, SessionCreated | SessionUpdated):
        event = _with_session(event, _SESSION_MSGPACK, message)
    return event, seq


def _with_session(
    event: SessionCreated | SessionUpdated,
    decoder: msgspec.json.Decoder[_Created | _Updated]
    | msgspec.msgpack.Decoder[_Created | _Updated],
    message: bytes,
) -> SessionCreated | SessionUpdated:
    """Read the session once more, with all that the dialect adds to it."""
    try:
        read = decoder.decode(message)
    except msgspec.MsgspecError as exc:
        raise _malformed(exc) from exc
    return msgspec.structs.replace(event, session=read.session)


def _with_token(created: SessionCreated, token: _Token) -> SessionCreated:
    """Add what lets another connection in, where the server says it."""
    if token.resume_token is None:
        return created
    return ResumableSessionCreated(
        session=created.session,
        resume_token=token.resume_token,
        attachment_generation=token.attachment_generation,
        continues=token.continues,
        next_sample=token.next_sample,
        last_event_id=token.last_event_id,
    )


def _unknown(message: bytes, exc: Exception) -> Numbered:
    try:
        head = _HEAD_MSGPACK.decode(message)
    except (msgspec.MsgspecError, RecursionError):
        raise _malformed(exc) from exc
    if not head.type or head.type in _EVENT_TYPES:
        raise _malformed(exc) from exc
    return UnknownEvent(type=head.type, raw=message), _number(head.event_id)


def _malformed(exc: Exception) -> Exception:
    return refused(f"the message cannot be read: {exc}", None, ErrorCode.INVALID_REQUEST)


def _number(event_id: str) -> int | None:
    numbered = _NUMBER.match(event_id)
    return None if numbered is None else int(numbered[1])


def _duplex_to_json(command: Command) -> bytes:
    if isinstance(command, UpdateSession):
        return _encode_json(_update(command))
    return encode_command(command)


def _duplex_to_msgpack(command: Command) -> bytes:
    return _encode_msgpack(_update(command) if isinstance(command, UpdateSession) else command)


def _update(command: UpdateSession) -> UpdateSession | dict[str, Any]:
    """Return an update with the one field where it stands on the wire."""
    patch = command.session
    if not isinstance(patch, DuplexPatch) or patch.auto_response is UNSET:
        return command
    message: dict[str, Any] = msgspec.to_builtins(command)
    session = message["session"]
    session["extra_body"] = {"auto_response": session.pop("auto_response")}
    return message


CLIENT_DIALECTS: Mapping[tuple[ClientFamily, Encoding], ClientDialect] = MappingProxyType(
    {
        ("realtime", "json"): ClientDialect("realtime", encode_command, _realtime_from_json),
        ("realtime", "msgpack"): ClientDialect(
            "realtime.msgpack", _encode_msgpack, _realtime_from_msgpack, binary=True
        ),
        ("duplex", "json"): ClientDialect("duplex", _duplex_to_json, _duplex_from_json),
        ("duplex", "msgpack"): ClientDialect(
            "duplex.msgpack", _duplex_to_msgpack, _duplex_from_msgpack, binary=True
        ),
    }
)
