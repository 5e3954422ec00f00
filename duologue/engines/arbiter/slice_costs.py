"""How long the slices of each shape of work take: a high percentile of the latest. Pure.

This module must not know what a shape is, nor a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

PERCENTILE = 0.95
KEPT = 64
"""Of each shape: the latest."""

SHAPES = 64
"""What is known of more shapes is forgotten, the longest unused first."""

ENOUGH = 3
"""So many of a shape that are too long, one after another, and it is too long for its device."""


class SliceCosts:
    """What is known of the costs. Before anything is, all cost nothing.

    Args:
        limit_s: What takes longer is too long.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._latest: dict[Hashable, deque[float]] = {}
        self._too_long: dict[Hashable, int] = {}

    def add(self, shape: Hashable, took_s: float) -> None:
        """Take note of a slice."""
        latest = self._latest.pop(shape, None) or deque(maxlen=KEPT)
        latest.append(took_s)
        self._latest[shape] = latest  # the last one used stands last
        if took_s <= self._limit_s:
            self._too_long.pop(shape, None)
        elif shape in self._too_long or len(self._too_long) < SHAPES:
            self._too_long[shape] = self._too_long.get(shape, 0) + 1
        if len(self._latest) > SHAPES:
            del self._latest[next(iter(self._latest))]

    def of(self, shape: Hashable) -> float:
        """Return what a slice may cost; of a new shape: as of the costliest that is known."""
        latest = self._latest.get(shape)
        if latest is None:
            return max((_percentile(each) for each in self._latest.values()), default=0.0)
        return _percentile(latest)

    def is_too_long(self, shape: Hashable) -> bool:
        """Tell whether slices of a shape are too long as a rule, not once."""
        return self._too_long.get(shape, 0) >= ENOUGH

    def forget(self, shape: Hashable) -> None:
        """Forget a shape that does not come again."""
        self._latest.pop(shape, None)
        self._too_long.pop(shape, None)

    def forget_longest(self, shape: Hashable) -> None:
        """Forget the longest: one that was long by chance must not keep all others waiting.

        Of a shape that is not known by itself, of all.
        """
        for each in (shape,) if shape in self._latest else list(self._latest):
            latest = self._latest[each]
            latest.remove(max(latest))
            if not latest:
                del self._latest[each]


def _percentile(latest: deque[float]) -> float:
    ordered = sorted(latest)
    return ordered[min(len(ordered) - 1, int(PERCENTILE * len(ordered)))]
