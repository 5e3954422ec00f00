"""Puts numbered frames back in order, where a carrier does not promise to keep it.

A frame that comes in its turn waits for nothing. This module must not know what is in a frame.
"""

from __future__ import annotations

MAX_HELD = 4
"""Frames that wait for one that is missing: 80 ms. Then it is taken for lost."""

RESTART = 50
"""A frame this far behind is no late one: the carrier counts anew."""


class Reorder:
    """The frames of one call."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._held: dict[int, bytes] = {}

    def put(self, number: int, frame: bytes) -> list[bytes]:
        """Take a frame; returns those whose turn it is. One that comes too late is left out."""
        if self._next is None or number <= self._next - RESTART:
            self._next = number
            self._held.clear()
        if number < self._next:
            return []
        self._held[number] = frame
        if len(self._held) > MAX_HELD:
            self._next = min(self._held)
        ready = []
        while self._next in self._held:
            ready.append(self._held.pop(self._next))
            self._next += 1
        return ready
