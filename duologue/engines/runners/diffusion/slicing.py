"""When a slice of work has lasted long enough. Pure: time is handed in.

This module must not know what is sliced.
"""

from __future__ import annotations


class SliceBudget:
    """Measures slices, and the parts between two points at which one could end.

    Args:
        slice_s: How long a slice may last before the next point ends it.
    """

    def __init__(self, slice_s: float) -> None:
        self.slice_s = slice_s
        self.longest_part_s = 0.0
        """Of the slice: the longest time between two points. None can be shorter."""
        self._slice_began = 0.0
        self._part_began = 0.0

    def begin(self, now: float) -> None:
        """A slice begins."""
        self._slice_began = self._part_began = now
        self.longest_part_s = 0.0

    def end(self, now: float) -> None:
        """A slice has ended, at a point or because the work has."""
        self.longest_part_s = max(self.longest_part_s, now - self._part_began)

    def is_used_up(self, now: float, *, must_end: bool = False) -> bool:
        """Tell at a point whether the slice ends here.

        Args:
            must_end: It does in any case.
        """
        self.longest_part_s = max(self.longest_part_s, now - self._part_began)
        self._part_began = now
        return must_end or now - self._slice_began >= self.slice_s
