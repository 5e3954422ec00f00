"""Refuses integers that no 64 bits hold, wherever they stand in what a client sends.

Python and JSON know larger ones; MessagePack, the links between processes and the models' own
arithmetic do not. What is refused as it is read fails nowhere later. A message is looked through
byte by byte only where that is quick, and value by value only where it has a number so long. This
module must not know what a message means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import msgspec

from duologue.core.errors import ProtocolError
from duologue.protocol.errors import SHOWN_CHARS, refused
from duologue.protocol.json_refusals import body_refusal, readable_event_id, refusal

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**64 - 1
"""What MessagePack can say: a signed integer of 64 bits, or an unsigned one."""

_DIGITS = 19
"""Any shorter number is within the limits."""

_STEPPED_FROM_BYTES = 64 * 1024
"""In a longer message the texts are what is long, and are stepped over."""

_BODY = "the body"

_PLAIN = re.compile(
    rb'(?:[^"0-9]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[0-9]{1,%d}+(?![0-9]))*+' % (_DIGITS - 1),
    re.DOTALL,
)
"""JSON without a long number; what stands in a text is none."""

_LONG = re.compile(rb"[0-9]{%d}" % _DIGITS)
_TEXT_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=MIN_INTEGER, le=2**63 - 1)]
"""For a field that a quick path reads without a look through the message."""

_Place: TypeAlias = "tuple[_Place | None, str, Any]"
"""The object or list that a value is in, its name there, and the value."""


def refuse_wide_integers(message: bytes, what: str = "the message") -> None:
    """Refuse a message or a body with an integer beyond 64 bits.

    Args:
        what: Of a body, that it is one: it has no ``event_id``.

    Raises:
        ProtocolError: There is one. ``param`` is its path and ``event_id`` the client's own. Or
            the message has a long number and is no JSON.
    """
    if not _has_long_number(message):
        return
    try:
        whole = msgspec.json.decode(message)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as exc:
        raise (body_refusal(exc) if what == _BODY else refusal(exc, message)) from None
    for place in _values(whole):
        if is_wide(place[2]):
            error = wide_integer(place[2], _path(place), what)
            error.event_id = None if what == _BODY else readable_event_id(message)
            raise error


def is_wide(value: object) -> bool:
    """Tell whether a value is an integer beyond 64 bits."""
    return isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER


def wide_integer(value: int, param: str | None, what: str = "the message") -> ProtocolError:
    """Return the error for an integer beyond 64 bits."""
    return refused(
        f"{param or what}: {_short(value)} has more than 64 bits; integers may be {MIN_INTEGER} to "
        f"{MAX_INTEGER}",
        param,
    )


def _has_long_number(message: bytes) -> bool:
    if len(message) < _STEPPED_FROM_BYTES:
        plain = _PLAIN.match(message)
        return plain is None or plain.end() < len(message)
    at = 0
    while (quote := message.find(b'"', at)) >= 0:
        if _LONG.search(message, at, quote):
            return True
        at = _behind_text(message, quote + 1)
    return _LONG.search(message, at) is not None


def _behind_text(message: bytes, start: int) -> int:
    """Return where it goes on behind a text that begins at ``start``."""
    end = message.find(b'"', start)
    if end >= 0 and message[end - 1] != ord("\\"):
        return end + 1
    text = _TEXT_REST.match(message, start)
    return len(message) if text is None else text.end()


def _values(whole: object) -> Iterator[_Place]:
    """Yield every value: not by recursion, since clients choose the depth."""
    waiting: list[_Place] = [(None, "", whole)]
    while waiting:
        place = waiting.pop()
        yield place
        value = place[2]
        if isinstance(value, dict):
            waiting += [(place, f".{key[:SHOWN_CHARS]}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(place, f"[{at}]", inner) for at, inner in enumerate(value)]


def _path(place: _Place) -> str | None:
    names: list[str] = []
    above: _Place | None = place
    while above is not None:
        names.append(above[1])
        above = above[0]
    path = "".join(reversed(names)).removeprefix(".")
    return path[-2 * SHOWN_CHARS :] or None


def _short(value: int) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_CHARS // 2 else f"{text[: SHOWN_CHARS // 2]}..."
