"""Takes what is large out of messages, and puts it back at the other end.

Small messages stay as they are, and in order. This module must not know what moves the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.messages import Apart, Append, JobOutput, Open, Part
from duologue.engines.payload_base import BytesElsewhere
from duologue.engines.payloads import Payload
from duologue.engines.transport.port import Handle

LEAST_BYTES = 256 * 1024
"""Of what one message can leave elsewhere: less of it costs less within (bench_transport)."""

LEAST_PART_BYTES = 64 * 1024
"""Of one of several, as the pictures of several cameras."""

_BESIDE_BYTES = 4096
"""A batch whose messages are this long on average may have nothing large in it."""

_LOOKS = 16
"""Where something large was found, so many batches are looked at before they are encoded."""

M = TypeVar("M", bound=msgspec.Struct)


class Lent(BytesElsewhere):
    """Bytes of a payload that the engine only hands on: they lie where their writer put them.

    They have a length, as far as the engine needs to know. When nobody refers to them any more,
    for whatever reason, their writer is told.

    Args:
        give_back: Told once; from any thread.
    """

    __slots__ = ("_give_back", "handle")

    def __init__(self, handle: Handle, give_back: Callable[[Handle], None]) -> None:
        self.handle = handle
        self._give_back = give_back

    def __len__(self) -> int:
        return self.handle.size_bytes

    def __del__(self) -> None:
        self._give_back(self.handle)


Put = Callable[[bytes | Lent], Handle | None]
Get = Callable[[Handle], bytes | Lent]


def may_be_large(messages: int, size_bytes: int) -> bool:
    """Tell from its length alone whether a batch is worth a look."""
    return size_bytes >= LEAST_BYTES + messages * _BESIDE_BYTES


class Outlook:
    """Where large payloads were sent, more are to be expected.

    To find them by the length of what was encoded costs messages of calls nothing, and large ones
    a copy for nothing. So a batch is looked at first while the last large one is not long ago.
    """

    def __init__(self) -> None:
        self.is_large = False
        self._looks = 0

    def saw(self, found: bool) -> None:
        """A batch was looked at."""
        self._looks = _LOOKS if found else max(0, self._looks - 1)
        self.is_large = self._looks > 0


def split(messages: Sequence[M], put: Put) -> Iterator[Apart | list[M]]:
    """Cut a batch where something large was taken out.

    Args:
        put: Leaves bytes somewhere; ``None`` where there is no room, and they stay.
    """
    together: list[M] = []
    for message in messages:
        apart = _take_out(message, put)
        if apart is None:
            together.append(message)
            continue
        if together:
            yield together
            together = []
        yield apart
    if together:
        yield together


def whole(apart: Apart, get: Get) -> Open | Append | JobOutput:
    """Put back what was taken out.

    Raises:
        EngineError: As ``get``, or there is no such place to put it back into.
    """
    payload = _payload(apart.message)
    if payload is None:
        raise EngineError("parts of a payload came without the payload")
    changed: dict[str, bytes | Lent | list[bytes | Lent]] = {}
    for part in apart.parts:
        if not _has_place(payload, part):
            raise EngineError("a part of a payload came that the payload does not have")
        found = get(part.handle)
        if part.item < 0:
            changed[part.field] = found
        else:
            several = changed.setdefault(part.field, list(getattr(payload, part.field)))
            several[part.item] = found  # type: ignore[index]
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in changed.items()}
    return _with_payload(apart.message, msgspec.structs.replace(payload, **fields))


@cache
def _large_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """Fields that hold bytes, and whether they hold several of them."""
    found = []
    for field in msgspec.structs.fields(kind):
        if field.type is bytes:
            found.append((field.name, False))
        elif field.type == tuple[bytes, ...]:
            found.append((field.name, True))
    return tuple(found)


def _take_out(message: msgspec.Struct, put: Put) -> Apart | None:
    if not isinstance(message, Open | Append | JobOutput):
        return None
    payload = _payload(message)
    if payload is None:
        return None
    fields: dict[str, list[bytes | Lent]] = {}
    large: list[tuple[str, int, bytes | Lent]] = []
    for name, several in _large_fields(type(payload)):
        value = getattr(payload, name)
        fields[name] = list(value) if several else [value]
        large += [(name, n, item) for n, item in enumerate(fields[name]) if _is_large(item)]
    enough = sum(len(item) for _, _, item in large) >= LEAST_BYTES
    if not enough and not any(isinstance(item, Lent) for _, _, item in large):
        return None
    parts = []
    for name, index, item in large:
        handle = put(item)
        if handle is not None:
            several = isinstance(getattr(payload, name), tuple)
            parts.append(Part(name, index if several else -1, handle))
            fields[name][index] = b""
    if not parts:
        return None
    emptied = {
        name: tuple(items) if isinstance(getattr(payload, name), tuple) else items[0]
        for name, items in fields.items()
    }
    rest = msgspec.structs.replace(payload, **emptied)
    return Apart(_with_payload(message, rest), tuple(parts))


def _has_place(payload: Payload, part: Part) -> bool:
    """Tell whether a part, as the other end names it, is one of this payload's."""
    several = dict(_large_fields(type(payload))).get(part.field)
    if several:
        return 0 <= part.item < len(getattr(payload, part.field))
    return several is False and part.item < 0


def _is_large(item: bytes | Lent) -> bool:
    return len(item) >= LEAST_PART_BYTES or isinstance(item, Lent)


def _payload(message: Open | Append | JobOutput) -> Payload | None:
    return message.first if isinstance(message, Open) else message.payload


def _with_payload(
    message: Open | Append | JobOutput, payload: Payload
) -> Open | Append | JobOutput:
    field = "first" if isinstance(message, Open) else "payload"
    return msgspec.structs.replace(message, **{field: payload})
