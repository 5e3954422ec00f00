"""One timer for a whole process: sessions that have something due sit in buckets of time.

A timer per session and frame costs more than the frame. The wheel holds only what is due,
rounds deadlines up to a tick, and arms one loop timer for the earliest bucket. Rounding up
means that a deadline never fires early. This module must not know what is due, or why.

Source:
    G. Varghese, T. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 6,
    with a dictionary in place of the ring, since few buckets are in use at a time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable
from typing import Protocol

TICK_S = 0.005
"""Below 5 ms loop timers are the noise (1 ms resolution); above it, pacing gets audible jitter."""


FEW = 64
"""Empty buckets that are not worth a sweep."""


class Timer(Protocol):
    """What ``loop.call_at`` returns."""

    def cancel(self) -> None:
        """Do not fire."""
        ...


class TimerFactory(Protocol):
    """``loop.call_at``: absolute time on the same clock as the deadlines."""

    def __call__(self, when: float, callback: Callable[[], None], /) -> Timer:
        """Arrange for ``callback`` at ``when``."""
        ...


class Due(Hashable, Protocol):
    """Something with a deadline."""

    def on_timer(self) -> None:
        """The deadline has come. May set a new one."""
        ...


class TimerWheel:
    """Calls ``on_timer`` of each member at its deadline, with one loop timer for all.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, call_at: TimerFactory, tick_s: float = TICK_S, few: int = FEW) -> None:
        self._call_at = call_at
        self._tick_s = tick_s
        self._buckets: dict[int, set[Due]] = {}
        # The ticks of all buckets. A bucket that empties early stays for a while, so that no tick
        # is ever kept twice.
        self._ticks: list[int] = []
        self._empty = 0
        self._few = few
        self._tick_of: dict[Due, int] = {}
        self._timer: Timer | None = None
        self._armed_tick: int | None = None

    def __len__(self) -> int:
        return len(self._tick_of)

    def set(self, member: Due, deadline: float | None) -> None:
        """Give a member its one deadline; ``None`` takes it off the wheel."""
        tick = None if deadline is None else self._tick_after(deadline)
        old = self._tick_of.get(member)
        if old == tick:
            return
        if old is not None:
            self._remove(member, old)
        if tick is not None:
            self._tick_of[member] = tick
            bucket = self._buckets.get(tick)
            if bucket is None:
                bucket = self._buckets[tick] = set()
                heapq.heappush(self._ticks, tick)
            elif not bucket:
                self._empty -= 1
            bucket.add(member)
            if self._armed_tick is None or tick < self._armed_tick:
                self._arm(tick)

    def _tick_after(self, deadline: float) -> int:
        tick = math.ceil(deadline / self._tick_s)
        # The division may round a deadline just past a tick down to it.
        return tick if tick * self._tick_s >= deadline else tick + 1

    def _remove(self, member: Due, tick: int) -> None:
        del self._tick_of[member]
        bucket = self._buckets[tick]
        bucket.discard(member)
        if not bucket:
            self._empty += 1
            if self._empty > self._few and 2 * self._empty > len(self._ticks):
                self._sweep()

    def _sweep(self) -> None:
        """Drop the empty buckets: what is due in an hour is mostly over long before."""
        self._buckets = {
            tick: bucket
            for tick, bucket in self._buckets.items()
            if bucket or tick == self._armed_tick
        }
        self._ticks = sorted(self._buckets)
        self._empty = sum(not bucket for bucket in self._buckets.values())

    def _arm(self, tick: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_tick = tick
        self._timer = None if tick is None else self._call_at(tick * self._tick_s, self._fire)

    def _fire(self) -> None:
        due_tick = self._armed_tick
        assert due_tick is not None
        self._timer = None
        bucket = self._buckets[due_tick]
        try:
            for member in tuple(bucket):
                # One that an earlier member re-timed or took off in this very tick is skipped.
                if member in bucket:
                    self._remove(member, due_tick)
                    member.on_timer()
        finally:
            # What members have set may be later than what others have been waiting for. Where
            # one raised, those after it are still in the bucket and have their turn at once.
            self._armed_tick = None
            self._arm_next()

    def _arm_next(self) -> None:
        while self._ticks and not self._buckets[self._ticks[0]]:
            del self._buckets[heapq.heappop(self._ticks)]
            self._empty -= 1
        if self._ticks:
            self._arm(self._ticks[0])
