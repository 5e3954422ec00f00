"""When a slice of work has lasted long enough. Pure: time is handed in.

This module must not know what is sliced.
"""

from __future__ import annotations

from collections import deque


class SliceBudget:
    """Measures slices, and the parts between two points at which one could end.

    Args:
        slice_s: How long a slice may last before the next point ends it.
        ahead: How many parts the device has yet to do when a point is reached: where a slice goes
            on there, it lasts for so many more.
    """

    def __init__(self, slice_s: float, ahead: int = 0) -> None:
        self.slice_s = slice_s
        self.longest_part_s = 0.0
        """Of the slice: the longest from a point to where it could end next. None is shorter."""
        self._slice_began = 0.0
        self._points: deque[float] = deque(maxlen=ahead + 1)

    def begin(self, now: float) -> None:
        """A slice begins."""
        self._slice_began = now
        self._points.clear()
        self._points.append(now)
        self.longest_part_s = 0.0

    def end(self, now: float) -> None:
        """A slice has ended, at a point or because the work has, and the device is done."""
        self._measure(now)

    def is_used_up(self, now: float, *, must_end: bool = False) -> bool:
        """Tell at a point whether the slice ends here.

        Args:
            must_end: It does in any case.
        """
        self._measure(now)
        self._points.append(now)
        return must_end or now - self._slice_began >= self.slice_s

    def leave_out(self, took_s: float) -> None:
        """Time since the last point was not spent on the device: it does not count."""
        self._slice_began += took_s
        for _ in range(len(self._points)):
            self._points.append(self._points.popleft() + took_s)

    def _measure(self, now: float) -> None:
        self.longest_part_s = max(self.longest_part_s, now - self._points[0])
