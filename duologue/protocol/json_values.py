"""How many values a long message in JSON holds, told before any of them is made.

A list of nothing is three bytes on the wire and a hundred in memory: a message of millions takes
seconds to read. Recordings and pictures are one text each, and their insides are passed over. This
module must not know what a message means.
"""

from __future__ import annotations

import re

from duologue.core.errors import LimitExceeded
from duologue.protocol.errors import ErrorCode
from duologue.protocol.limits import MAX_VALUES

COUNTED_FROM_BYTES = 256 * 1024
"""A smaller message takes a few milliseconds at most, whatever is in it."""

_STRETCH_BYTES = 256 * 1024
"""What is looked at by one call of the interpreter, so that other threads have a turn."""

_BEGINS_VALUES = (b",", b"[", b"{")
"""Every value but the first follows one of them."""

_ESCAPED = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


def refuse_many_json_values(message: bytes, what: str = "the message") -> None:
    """Refuse, before it is read, a message that would take long to read.

    Raises:
        LimitExceeded: It has more than ``MAX_VALUES`` strings, keys included, or as many values.
    """
    size = len(message)
    if size <= COUNTED_FROM_BYTES:
        return
    at = strings = values = 0
    while at < size:
        quote = message.find(b'"', at)
        end = size if quote < 0 else quote
        values += _count(message, at, end, MAX_VALUES - values)
        strings += quote >= 0
        if values > MAX_VALUES or strings > MAX_VALUES:
            raise LimitExceeded(
                f"{what} has more than {MAX_VALUES} values and keys; send less of them at a time",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        at = size if quote < 0 else _end_of_text(message, quote + 1)


def _count(message: bytes, start: int, end: int, most: int) -> int:
    """Count what begins values between two texts; no further than it takes to be too many."""
    found = 0
    for at in range(start, end, _STRETCH_BYTES):
        stop = min(end, at + _STRETCH_BYTES)
        found += sum(message.count(mark, at, stop) for mark in _BEGINS_VALUES)
        if found > most:
            break
    return found


def _end_of_text(message: bytes, start: int) -> int:
    """Return where it goes on behind a text that begins at ``start``."""
    end = message.find(b'"', start)
    if end < 0:
        return len(message)
    if message[end - 1] != ord("\\"):
        return end + 1
    while start < len(message):
        # Escapes are rare in what is long; where they are not, it is looked through in stretches.
        passed = _ESCAPED.match(message, start, start + _STRETCH_BYTES)
        assert passed is not None, "nothing is a match, too"
        if passed.end() == start or message[passed.end() : passed.end() + 1] == b'"':
            return passed.end() + 1
        start = passed.end()
    return len(message)
