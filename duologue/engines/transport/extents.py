"""Which bytes of a fixed piece of memory are taken. Pure; must not know what lies there."""

from __future__ import annotations

from bisect import bisect_left, insort

ALIGNMENT = 4096
"""A page, so that what was freed can be handed back to the system."""


class Extents:
    """Hands out runs of bytes, the lowest that fit first.

    So a writer that needs little touches little of its memory, and the same pages again and again.
    """

    def __init__(self, size_bytes: int) -> None:
        self._free: list[tuple[int, int]] = [(0, size_bytes)] if size_bytes else []
        self.size_bytes = size_bytes
        self.taken_bytes = 0

    def take(self, size_bytes: int) -> int | None:
        """Return where a run begins; ``None`` if none is long enough. Nothing takes no room."""
        needed = _rounded(size_bytes)
        if not needed:
            return 0
        for index, (start, length) in enumerate(self._free):
            if length >= needed:
                if length == needed:
                    del self._free[index]
                else:
                    self._free[index] = (start + needed, length - needed)
                self.taken_bytes += needed
                return start
        return None

    def give_back(self, start: int, size_bytes: int) -> None:
        """Make a run free that ``take`` gave for so many bytes."""
        length = _rounded(size_bytes)
        if not length:
            return
        self.taken_bytes -= length
        index = bisect_left(self._free, (start, 0))
        if index < len(self._free) and self._free[index][0] == start + length:
            length += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == start:
            start, before = self._free.pop(index - 1)
            length += before
        insort(self._free, (start, length))


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT
