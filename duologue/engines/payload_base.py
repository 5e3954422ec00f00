"""What every payload can say of itself: how much it holds, and what it costs.

Both are worked out from its fields, or said by a payload that knows better, so that a new one has
them without a line elsewhere. This module must not know who bounds what waits, or grants credit.
"""

from __future__ import annotations

import msgspec

OVERHEAD_BYTES = 256
"""What a payload takes beside its contents, so that a flood of empty ones is bounded as well."""

_POINTER_BYTES = 8


class BytesElsewhere:
    """Bytes of a payload on its way through a process that does not read them: a length alone."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError


class PayloadBase(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=True):
    """A payload, or a part of one: numbers, text, bytes, parts, and tuples of these."""

    def size_bytes(self) -> int:
        """Roughly the memory it takes while it waits; a character counts for one byte.

        The same at both ends of a link: the engine adds what it sends, workers say what they took.
        """
        return OVERHEAD_BYTES + sum(map(_contents, msgspec.structs.astuple(self)))

    def cost(self) -> int:
        """Return what it takes, as an output, of its job's credit: milliseconds, if it is audio.

        Nothing, if it only describes other outputs: a caller that grants back what it has played
        would run dry by and by.
        """
        return 1


def _contents(value: object) -> int:
    """What a field holds beside itself."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_contents, value)) + _POINTER_BYTES * len(value)
    if isinstance(value, PayloadBase):
        return value.size_bytes()
    return len(value) if isinstance(value, BytesElsewhere) else 0
