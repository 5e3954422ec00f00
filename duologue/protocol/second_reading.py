"""A second, lenient reading of items and responses.

The strict decoder takes a null only where the field may be null. Some clients write every field
they know, so what they leave out arrives as null; here null counts as absent. (In
``session.update`` a null has a meaning of its own and is never dropped.) And the beta API had
shorter names for what an assistant's message holds, which some clients use to this day. This
module must not know why the first reading failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from duologue.protocol.commands import CreateItem, CreateResponse
from duologue.protocol.flat_fields import FlatCreateResponse

_READABLE: dict[str, type[CreateItem] | type[FlatCreateResponse]] = {
    "conversation.item.create": CreateItem,
    "response.create": FlatCreateResponse,
}
_DEPTH = 6
"""``response.input[].content[].field`` is the deepest field of ours."""

_FOREIGN = frozenset({"parameters"})
"""JSON Schema, where null is a value."""

_BY_ASSISTANT: Mapping[object, str] = {"text": "output_text", "audio": "output_audio"}
_BY_OTHERS: Mapping[object, str] = {"text": "input_text", "audio": "input_audio"}


def read_leniently(message: bytes, event_type: str | None) -> CreateItem | CreateResponse | None:
    """Return the command that such a client means; None for another type of message.

    Raises:
        msgspec.MsgspecError: It cannot be read this way either.
        RecursionError: It is nested too deeply.
    """
    kind = _READABLE.get(event_type or "")
    if kind is None:
        return None
    command = msgspec.convert(_without_nulls(msgspec.json.decode(message), _DEPTH), kind)
    return command.command() if isinstance(command, FlatCreateResponse) else command


def _without_nulls(value: Any, depth: int) -> Any:
    if depth == 0:
        return value
    if isinstance(value, dict):
        plain = {
            key: inner if key in _FOREIGN else _without_nulls(inner, depth - 1)
            for key, inner in value.items()
            if inner is not None
        }
        if plain.get("type") == "message" and isinstance(plain.get("content"), list):
            plain["content"] = [_renamed(part, plain.get("role")) for part in plain["content"]]
        return plain
    if isinstance(value, list):
        return [_without_nulls(inner, depth - 1) for inner in value]
    return value


def _renamed(part: Any, role: object) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return part
    names = _BY_ASSISTANT if role == "assistant" else _BY_OTHERS
    return part | {"type": names.get(part["type"], part["type"])}
