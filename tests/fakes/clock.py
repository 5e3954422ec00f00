"""A clock that stands still until a test moves it, and the timers that hang on it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

WALL_START_S = 1_700_000_000.0


class FakeTimer:
    """What ``FakeClock.call_at`` returns."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """Monotonic time from 0 and wall time from a fixed date, moved by ``advance`` alone.

    ``call_at`` is the timer factory for a ``TimerWheel`` on the same clock.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._start = now
        self._order = itertools.count()
        self._timers: list[tuple[float, int, FakeTimer]] = []

    def now(self) -> float:
        return self._now

    def wall_time(self) -> float:
        return WALL_START_S + self._now - self._start

    def call_at(self, when: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(when, callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, firing what falls due on the way, in order, each at its own time."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                self._now = max(self._now, when)
                timer.callback()
        self._now = end

    def stall(self, seconds: float) -> None:
        """Let time pass without firing anything, as a blocked loop does."""
        self._now += seconds
