"""Inputs, effects and events of a session as plain JSON values, with or without what was said.

Without content, audio is its length and free text as many ``x``: ids, numbers, and words from
closed sets stay. What is free text is read off the type of a field, so a field that is added
tomorrow is blanked unless somebody lists it here. This module must not know what a recording is.
"""

from __future__ import annotations

import dataclasses
import types
from base64 import b64decode, b64encode
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NewType, get_args, get_origin
from typing import get_type_hints as type_hints
from zlib import crc32

import msgspec
from msgspec import UNSET

from duologue.core.errors import CodecError
from duologue.core.fence import Fence
from duologue.engines import payloads
from duologue.engines.ports import Ended, Outcome, Output, Request
from duologue.protocol.duplex.config import DuplexConfig
from duologue.protocol.session_config import SessionConfig
from duologue.sessions import effects
from duologue.sessions.inputs import Rejected

NAMES = frozenset(
    (
        "id",
        "request_id",
        "response_id",
        "item_id",
        "previous_item_id",
        "conversation_id",
        "call_id",
        "session",
        "lane",
        "pipeline",
        "model",
        "voice",
        "type",
        "code",
        "part",
        "reason",
        "param",
    )
)
"""Fields of free text that stay without content: ids, and names that the server knows."""

_KIND = "$"
_BYTES = "$bytes"
_SIZE = "$size"
_CHECKSUM = "$crc32"
_LIST = "$list"
_SET = "$set"
_DICT = "$dict"
_UNSET = "$unset"
_OURS = ("duologue.protocol.", "duologue.engines.payloads", "duologue.engines.ports")


class Content(Enum):
    """How much of what was said is packed."""

    NONE = "none"
    """Lengths."""

    TEXT = "text"
    """Text, and of audio its length and a checksum: for what follows from something packed."""

    ALL = "all"


def pack(value: object, content: Content) -> Any:
    """Return a value as JSON can hold it."""
    return _pack(value, content, free=False)


def unpack(packed: Any) -> Any:
    """Return what was packed; where content was left out, zeros and ``x`` of its length.

    Raises:
        CodecError: Nobody packed this.
    """
    try:
        return _unpack(packed)
    except (KeyError, TypeError, ValueError) as exc:
        raise CodecError("the recording holds a value that this version cannot read") from exc


def _pack(value: object, content: Content, *, free: bool) -> Any:
    blanks = content is Content.NONE
    match value:
        case Enum() if type(value) is Outcome:
            return {_KIND: "Outcome", "value": value.value}
        case str():
            return "x" * len(value) if blanks and free else str(value)
        case None | bool() | int() | float():
            return value
        case bytes():
            if content is Content.ALL:
                return {_BYTES: b64encode(value).decode()}
            size = {_SIZE: len(value)}
            return size if blanks else {**size, _CHECKSUM: crc32(value)}
        case tuple():
            return [_pack(item, content, free=free) for item in value]
        case list():
            return {_LIST: [_pack(item, content, free=free) for item in value]}
        case frozenset() | set():
            return {_SET: sorted(_pack(item, content, free=free) for item in value)}
        case dict():
            pairs = enumerate(value.items())
            return {
                _DICT: [
                    [f"x{n}" if blanks and free else key, _pack(item, content, free=free)]
                    for n, (key, item) in pairs
                ]
            }
        case _ if value is UNSET:
            return {_UNSET: True}
    kind: Any = type(value)
    packed: dict[str, Any] = {_KIND: _name(kind)}
    for name, default, is_free in _fields(kind):
        item = getattr(value, name)
        if item is not default and item != default:
            packed[name] = _pack(item, content, free=is_free)
    return packed


def _unpack(packed: Any) -> Any:
    if isinstance(packed, list):
        return tuple(_unpack(item) for item in packed)
    if not isinstance(packed, dict):
        return packed
    if _KIND in packed:
        kind = packed[_KIND]
        if kind == "Outcome":
            return Outcome(packed["value"])
        fields = {name: _unpack(item) for name, item in packed.items() if name != _KIND}
        return _kinds()[kind](**fields)
    key: str
    inner: Any
    key, inner = next(iter(packed.items()), ("", None))
    match key:
        case "$size":
            return bytes(inner)
        case "$bytes":
            return b64decode(inner, validate=True)
        case "$list":
            return [_unpack(item) for item in inner]
        case "$set":
            return frozenset(_unpack(item) for item in inner)
        case "$dict":
            return {name: _unpack(item) for name, item in inner}
        case "$unset":
            return UNSET
    raise ValueError(key)


@cache
def _fields(kind: type) -> tuple[tuple[str, object, bool], ...]:
    """Name, default and "is free text" of each field."""
    hints = type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        given = [(field.name, field.default) for field in msgspec.structs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        given = [(field.name, field.default) for field in dataclasses.fields(kind)]
    else:
        raise TypeError(f"{kind.__name__} cannot be recorded")
    return tuple(
        (name, default, name not in NAMES and _is_free(hints[name])) for name, default in given
    )


def _is_free(hint: Any) -> bool:
    """Tell whether a field of this type may hold text that somebody wrote or said."""
    if hint is str or hint is Any or hint is object:
        return True
    if isinstance(hint, NewType):
        return _is_free(hint.__supertype__)
    origin = get_origin(hint)
    if origin is Literal:
        return False
    if origin is Annotated:
        return _is_free(get_args(hint)[0])
    if origin is not None or isinstance(hint, types.UnionType):
        return any(_is_free(argument) for argument in get_args(hint) if argument is not Ellipsis)
    return hint in (dict, list, tuple)


@cache
def _kinds() -> dict[str, type]:
    """All that can be packed, by name. Nothing else is ever made of a recording."""
    found: dict[str, type] = {
        _name(kind): kind
        for kind in (Fence, Ended, Output, Request, Rejected, SessionConfig, DuplexConfig)
    }
    for kind in (*payloads.Payload.__args__, *effects.Effect.__args__):
        found[_name(kind)] = kind
    for kind in _below(msgspec.Struct):
        if kind.__module__.startswith(_OURS) and not kind.__name__.startswith("_"):
            found[_name(kind)] = kind
    return found


def _name(kind: type) -> str:
    # Payloads and events share some names.
    return f"{kind.__module__.removeprefix('duologue.')}.{kind.__name__}"


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)
