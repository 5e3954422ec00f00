"""Identifiers, made from a generator that is handed in: tests pass a seeded one."""

from __future__ import annotations

import random
from collections.abc import Callable

IdMaker = Callable[[str], str]
"""Takes a prefix such as ``item`` and returns a new id such as ``item_4kq...``."""

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 20
"""20 of 36 characters are 103 bits; the id stays below the 32 characters that clients accept."""


def id_maker(source: random.Random | None = None) -> IdMaker:
    """Return a maker of ids; without ``source`` they come from the system's secure generator."""
    generator = source if source is not None else random.SystemRandom()

    def make(prefix: str) -> str:
        return f"{prefix}_{''.join(generator.choices(_ALPHABET, k=_LENGTH))}"

    return make
