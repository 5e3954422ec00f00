"""What messages of a link are made of. This module must not know any message."""

from __future__ import annotations

import msgspec


class LinkStruct(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=True):
    """A message: an array that begins with the name of its class."""


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command or an event.

    Args:
        kind: Its place in the table of ``hosts.packing``.
        body: Its fields, in MessagePack.
    """

    kind: int
    body: msgspec.Raw


class Fault(msgspec.Struct, frozen=True, array_like=True):
    """An exception of ours; ``kind`` is the name of its class."""

    kind: str
    code: str
    message: str
    param: str | None = None
    retry_after_s: float = 0.0


class NumberedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ``Delivery``."""

    seq: int
    event: Packed
