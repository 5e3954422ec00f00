"""A second reading of items and responses in which null counts as absent.

The strict decoder takes a null only where the field may be null. Some clients write every field
they know, so what they leave out arrives as null. In ``session.update`` a null has a meaning of its
own and is never dropped. This module must not know why the first reading failed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from duologue.protocol.commands import CreateItem, CreateResponse

_READABLE: dict[str, type[CreateItem] | type[CreateResponse]] = {
    "conversation.item.create": CreateItem,
    "response.create": CreateResponse,
}
_DEPTH = 6
"""``response.input[].content[].field`` is the deepest field of ours."""

_FOREIGN = frozenset({"parameters"})
"""JSON Schema, where null is a value."""


def decode_without_nulls(
    message: bytes, event_type: str | None
) -> CreateItem | CreateResponse | None:
    """Return the command with its nulls dropped; None if that does not make it readable."""
    kind = _READABLE.get(event_type or "")
    if kind is None:
        return None
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(message), _DEPTH), kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _without_nulls(value: Any, depth: int) -> Any:
    if depth == 0:
        return value
    if isinstance(value, dict):
        return {
            key: inner if key in _FOREIGN else _without_nulls(inner, depth - 1)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_without_nulls(inner, depth - 1) for inner in value]
    return value
