"""Text that a recogniser says over and over: the usual way in which small models fail.

This module must not know models.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_LEAST_TURNS = 1.6
"""The second time may be cut short, by the limit on the length of an answer."""


def first_turn(text: str) -> str | None:
    """Return what is said if all of ``text`` is one thing said again and again, else ``None``."""
    places = list(_WORD.finditer(text))
    words = [place.group().casefold() for place in places]
    for period in range(1, int(len(words) / _LEAST_TURNS) + 1):
        if words[period:] == words[:-period]:
            end = places[period].start()
            return text[:end].rstrip()
    return None
