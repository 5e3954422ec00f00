"""Identifiers, made from a generator that is handed in: tests pass a seeded one."""

from __future__ import annotations

import random
from collections.abc import Callable

IdMaker = Callable[[str], str]
"""Takes a prefix such as ``item`` and returns a new id such as ``item_4kq...``."""

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 20
"""20 of 36 characters are 103 bits; the id stays below the 32 characters that clients accept."""

_LETTER_OF_BYTE = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))
"""Of 256 values four letters get eight and the rest seven, which costs a hundredth of a bit."""


def id_maker(source: random.Random | None = None) -> IdMaker:
    """Return a maker of ids; without ``source`` they come from the system's secure generator."""
    generator = source if source is not None else random.SystemRandom()

    def make(prefix: str) -> str:
        # One read of the generator: the system's costs a call of the kernel each time.
        drawn = generator.getrandbits(8 * _LENGTH).to_bytes(_LENGTH, "big")
        return f"{prefix}_{drawn.translate(_LETTER_OF_BYTE).decode()}"

    return make
