"""Messages that are wrong in every way: a seed picks a good one and spoils it.

Half of what comes out is wrong in its values (still JSON), half in its bytes. This module must not
know what is right.
"""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from duologue.protocol.dialect import Encoding

Path = list[tuple[Any, Any]]
"""From the outermost container down: each container, and the key or index in it."""

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 1e-308),
    *(10**12, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, 10**400),
    *("", " ", "x", "0", "null", "inf", "-Infinity", "auto", "none", "root", "audio", "text"),
    *("\ud800", "\udfff\ud800", "\x00", "\x1f\x7f", "\u202e", "😀", "a\u0300" * 40, "é" * 3000),
    *("x" * 600, "x" * 70_000, "A" * 4097, "data:audio/wav;base64,AAAA", "../../etc/passwd"),
    *([], {}, [[]], [{}], {"": ""}, [None] * 300, ["x"] * 300, {"type": None}, {"type": []}),
)
SNIPPETS = (
    *(b"\x00", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf"),
    *(b'"', b"\\", b"\\u", b"\\ud800", b"\\ud83d\\ude00", b"\\x", b"{", b"}", b"[", b"]", b","),
    b"9" * 5_000,
    *(b":", b"NaN", b"Infinity", b"-", b"1e999", b"0x10", b"01", b"//", b"/**/", b"'", b"\n"),
    *(b'"type":"response.cancel",', b'"event_id":7,', b'"event_id":"mine",', b'"audio":"AAAA",'),
)
DEPTHS = (3, 40, 70, 300, 900, 5_000, 20_000)


class Mutator:
    """Spoils messages.

    Args:
        corpus: Good ones.
        encoding: How they are written.
    """

    def __init__(
        self, corpus: Sequence[dict[str, Any]], seed: int, encoding: Encoding = "json"
    ) -> None:
        self._corpus = corpus
        self._write = _in_json if encoding == "json" else _in_msgpack
        self._random = random.Random(seed)
        self._structural: tuple[Callable[[Any], Any], ...] = (
            *(self._replace, self._replace, self._drop, self._drop, self._misspell),
            *(self._swap_type, self._add, self._rename, self._repeat, self._splice, self._wrap),
        )
        self._textual: tuple[Callable[[bytes], bytes], ...] = (
            *(self._truncate, self._flip, self._insert, self._double_key, self._nest),
            *(self._cut_out, self._join),
        )
        if encoding == "msgpack":
            self._textual = (
                *(self._truncate, self._flip, self._flip, self._insert, self._nest_lists),
                *(self._cut_out, self._join),
            )

    def message(self) -> bytes:
        """Return the next one; one in ten is good."""
        value = json.loads(json.dumps(self._random.choice(self._corpus)))
        kind = self._random.random()
        if 0.1 <= kind < 0.7:
            for _ in range(self._random.choice((1, 1, 1, 2, 3))):
                value = self._random.choice(self._structural)(value)
        message = self._write(value)
        if kind >= 0.6:
            message = self._random.choice(self._textual)(message)
        return message

    # In values

    def _somewhere(self, value: Any) -> tuple[Any, Any] | None:
        """Pick a container and a key or index in it."""
        found: list[tuple[Any, Any]] = []
        waiting = [value]
        while waiting:
            container = waiting.pop()
            keys = (
                list(container)
                if isinstance(container, dict)
                else range(min(len(container), 20))
                if isinstance(container, list)
                else ()
            )
            for key in keys:
                found.append((container, key))
                waiting.append(container[key])
        return self._random.choice(found) if found else None

    def _replace(self, value: Any) -> Any:
        if (place := self._somewhere(value)) is not None:
            place[0][place[1]] = deepcopy(self._random.choice(ODD_VALUES))
        return value

    def _drop(self, value: Any) -> Any:
        if (place := self._somewhere(value)) is not None:
            del place[0][place[1]]
        return value

    def _misspell(self, value: Any) -> Any:
        place = self._somewhere(value)
        if place is not None and isinstance(text := place[0][place[1]], str) and text:
            at = self._random.randrange(len(text))
            place[0][place[1]] = self._random.choice(
                (
                    text + " ",
                    text.upper(),
                    text[:at] + "-" + text[at + 1 :],
                    text[:at] + text[at + 1 :],
                    text + "\u0000",
                    text[::-1],
                )
            )
        return value

    def _swap_type(self, value: Any) -> Any:
        if (place := self._somewhere(value)) is None:
            return value
        old = place[0][place[1]]
        place[0][place[1]] = (
            str(old)[:200]
            if isinstance(old, int | float | None)
            else list(old)[:50]
            if isinstance(old, dict)
            else dict.fromkeys(map(str, old[:50]), 1)
            if isinstance(old, list)
            else len(old)
        )
        return value

    def _add(self, value: Any) -> Any:
        place = self._somewhere(value)
        if place is not None and isinstance(place[0], dict):
            key = self._random.choice(("foo", "", "type", "id", "event_id", "\ud800", "x" * 300))
            place[0][key] = deepcopy(self._random.choice(ODD_VALUES))
        return value

    def _rename(self, value: Any) -> Any:
        place = self._somewhere(value)
        if place is not None and isinstance(place[0], dict):
            container, key = place
            container[key + self._random.choice((" ", "_", "s", "\x00"))] = container.pop(key)
        return value

    def _repeat(self, value: Any) -> Any:
        place = self._somewhere(value)
        if place is not None and isinstance(place[0], list):
            place[0].extend([place[0][place[1]]] * self._random.choice((1, 5, 200)))
        return value

    def _splice(self, value: Any) -> Any:
        """Put a part of another message here."""
        other = json.loads(json.dumps(self._random.choice(self._corpus)))
        here, there = self._somewhere(value), self._somewhere(other)
        if here is not None and there is not None:
            here[0][here[1]] = there[0][there[1]]
        return value

    def _wrap(self, value: Any) -> Any:
        return self._random.choice(([value], {"type": value}, {"session": value}, None, 7, "x"))

    # In bytes

    def _at(self, message: bytes) -> int:
        return self._random.randrange(len(message) + 1)

    def _truncate(self, message: bytes) -> bytes:
        return message[: self._at(message)]

    def _flip(self, message: bytes) -> bytes:
        spoiled = bytearray(message)
        for _ in range(self._random.choice((1, 2, 8))):
            spoiled[self._random.randrange(len(spoiled))] ^= 1 << self._random.randrange(8)
        return bytes(spoiled)

    def _insert(self, message: bytes) -> bytes:
        at = self._random.choice((0, 1, self._at(message), len(message)))
        return message[:at] + self._random.choice(SNIPPETS) + message[at:]

    def _double_key(self, message: bytes) -> bytes:
        keys = [at for at in range(len(message)) if message.startswith(b'":', at)]
        if not keys:
            return message
        end = self._random.choice(keys)
        start = message.rfind(b'"', 0, end)
        double = message[start : end + 2] + b"null,"
        return message[:start] + double + message[start:]

    def _nest(self, message: bytes) -> bytes:
        """Put a deep nest where some value stands."""
        depth = self._random.choice(DEPTHS)
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        nest = opening * depth + b"1" + closing * depth
        starts = [at + 2 for at in range(len(message)) if message.startswith(b'":', at)]
        if not starts:
            return nest
        at = self._random.choice(starts)
        ends = [end for end in (message.find(b",", at), message.find(b"}", at)) if end >= 0]
        return message[:at] + nest + message[min(ends, default=len(message)) :]

    def _nest_lists(self, message: bytes) -> bytes:
        """Put a deep nest somewhere."""
        nest = self._random.choice((b"\x91", b"\x81\xa1a")) * self._random.choice(DEPTHS)
        at = self._at(message)
        return message[:at] + nest + b"\x01" + message[at:]

    def _cut_out(self, message: bytes) -> bytes:
        first, last = sorted((self._at(message), self._at(message)))
        return message[:first] + message[last:]

    def _join(self, message: bytes) -> bytes:
        return message + self._random.choice((b"", b" ", b"\n", b",")) + message


def _in_json(value: Any) -> bytes:
    # Lone surrogates become escapes, huge numbers stand as digits.
    return json.dumps(value, separators=(",", ":")).encode()


def _in_msgpack(value: Any) -> bytes:
    return msgspec.msgpack.encode(_as_binary(value))


def _as_binary(value: Any, key: object = None) -> Any:
    """What MessagePack has no form for takes the nearest one; audio is bytes."""
    match value:
        case dict():
            return {_as_binary(name): _as_binary(inner, name) for name, inner in value.items()}
        case list():
            return [_as_binary(inner) for inner in value]
        case str() if key in ("audio", "delta") and len(value) % 4 == 0:
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                return value.encode(errors="replace").decode()
        case str():
            return value.encode(errors="replace").decode()
        case bool() | None:
            return value
        case int() if not -(2**63) <= value < 2**64:
            return math.inf if value > 0 else math.nan
        case _:
            return value
