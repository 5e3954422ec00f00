"""How many values a long MessagePack message holds, told before any of them is made.

This module must not know what a message means.

Source:
    The MessagePack specification, https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from duologue.core.errors import LimitExceeded
from duologue.protocol.errors import ErrorCode
from duologue.protocol.limits import MAX_VALUES

_COUNTED_FROM_BYTES = 64 * 1024
"""A smaller message takes a few milliseconds at most, whatever is in it."""

_BYTES_AFTER: Mapping[int, int] = {
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""First byte -> bytes that follow: numbers, and extensions of a fixed size."""

_LENGTH_AND_MORE: Mapping[int, tuple[int, int]] = {
    0xC4: (1, 0),
    0xC5: (2, 0),
    0xC6: (4, 0),
    0xC7: (1, 1),
    0xC8: (2, 1),
    0xC9: (4, 1),
    0xD9: (1, 0),
    0xDA: (2, 0),
    0xDB: (4, 0),
}
"""First byte -> size of the length that follows, bytes beside the content: bin, ext, str."""

_COUNT_AND_EACH: Mapping[int, tuple[int, int]] = {
    0xDC: (2, 1),
    0xDD: (4, 1),
    0xDE: (2, 2),
    0xDF: (4, 2),
}
"""First byte -> size of the count that follows, values in each element: arrays, maps."""


def refuse_many_values(message: bytes) -> None:
    """Refuse, before it is read, a message that would take long to read.

    Raises:
        LimitExceeded: It has more than ``MAX_VALUES`` values, keys included.
    """
    size = len(message)
    if size <= _COUNTED_FROM_BYTES:
        return
    offset = seen = 0
    awaited = 1
    while awaited and offset < size:  # what is cut off, the decoder says
        first = message[offset]
        offset += 1
        awaited -= 1
        seen += 1
        if 0x80 <= first < 0x90:
            awaited += 2 * (first & 0x0F)
        elif 0x90 <= first < 0xA0:
            awaited += first & 0x0F
        elif 0xA0 <= first < 0xC0:
            offset += first & 0x1F
        elif first in _LENGTH_AND_MORE:
            width, more = _LENGTH_AND_MORE[first]
            offset += int.from_bytes(message[offset : offset + width], "big") + width + more
        elif first in _COUNT_AND_EACH:
            width, each = _COUNT_AND_EACH[first]
            awaited += each * int.from_bytes(message[offset : offset + width], "big")
            offset += width
        else:
            offset += _BYTES_AFTER.get(first, 0)
        if seen + awaited > MAX_VALUES:
            raise LimitExceeded(
                f"the message has more than {MAX_VALUES} values and keys; send less of them at a "
                "time",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
