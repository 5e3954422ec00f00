"""Counters, gauges and histograms that cost next to nothing to write.

A frame touches several of these, so a write is one addition: no lock and no look-up, a sixth of
what the same write costs in ``prometheus_client``. This module must not know how figures are
exported, nor which ones exist.

Concurrency:
    Written and read on the event loop. Other threads and processes hand their figures over with
    their results.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

OTHER = "other"
"""Label value for what is in no closed set: seen in a graph, it is a bug of ours, never a crash."""


class Counter:
    """Only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``, which must not be negative."""
        self.value += amount


class Gauge:
    """Goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        """Replace the value."""
        self.value = value

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``; take away with a negative one."""
        self.value += amount


class Histogram:
    """Counts values by the first edge that they do not exceed."""

    __slots__ = ("counts", "edges", "sum")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        self.sum: float = 0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.edges, value)] += 1
        self.sum += value

    def quantile(self, share: float) -> float | None:
        """An upper bound for the value that ``share`` of all stay below; ``None`` without values.

        Past the last edge the bound is infinite.
        """
        wanted = share * sum(self.counts)
        if not wanted:
            return None
        reached = 0
        for edge, count in zip(self.edges, self.counts, strict=False):
            reached += count
            if reached >= wanted:
                return edge
        return float("inf")


Instrument = Counter | Gauge | Histogram

AnInstrument = TypeVar("AnInstrument", bound=Instrument)


class Family(Generic[AnInstrument]):
    """One instrument for each value of one label, from a closed set.

    All members exist from the start, so that a rate that never rose is a zero and not a gap.

    Args:
        make: Makes one instrument.
        values: All values that the label can take.
    """

    __slots__ = ("_members", "_other")

    def __init__(self, make: Callable[[], AnInstrument], values: Iterable[str]) -> None:
        self._members = {value: make() for value in sorted({*values, OTHER})}
        self._other = self._members[OTHER]

    def __getitem__(self, value: str) -> AnInstrument:
        return self._members.get(value, self._other)

    def __iter__(self) -> Iterator[tuple[str, AnInstrument]]:
        return iter(self._members.items())


class Grid(Generic[AnInstrument]):
    """The same for two labels: one instrument for each pair of their values."""

    __slots__ = ("_columns", "_members")

    def __init__(
        self, make: Callable[[], AnInstrument], rows: Iterable[str], columns: Iterable[str]
    ) -> None:
        self._columns = {*columns, OTHER}
        self._members = {
            (row, column): make()
            for row in sorted({*rows, OTHER})
            for column in sorted(self._columns)
        }

    def __getitem__(self, pair: tuple[str, str]) -> AnInstrument:
        found = self._members.get(pair)
        if found is None:
            row, column = pair
            row = row if (row, OTHER) in self._members else OTHER
            found = self._members[row, column if column in self._columns else OTHER]
        return found

    def __iter__(self) -> Iterator[tuple[tuple[str, str], AnInstrument]]:
        return iter(self._members.items())
