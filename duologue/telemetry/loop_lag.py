"""Measures how late the event loop runs its timers. It must not know why it is late."""

from __future__ import annotations

from duologue.core.clock import Clock
from duologue.core.wheel import TICK_S, TimerWheel
from duologue.telemetry.instruments import Histogram

PERIOD_TICKS = 50
"""Four looks a second: enough to catch a blocked loop, too few to be felt."""


class LoopLagProbe:
    """A member of the timer wheel that notes the delay of its own call.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, wheel: TimerWheel, clock: Clock, lag: Histogram) -> None:
        self._wheel = wheel
        self._clock = clock
        self._lag = lag
        self._deadline: float | None = None

    def start(self) -> None:
        """Begin to look."""
        self._set_deadline()

    def stop(self) -> None:
        """Leave the wheel."""
        self._deadline = None
        self._wheel.set(self, None)

    def on_timer(self) -> None:
        """Note the delay and look again later."""
        if self._deadline is not None:
            self._lag.observe(max(0.0, self._clock.now() - self._deadline))
            self._set_deadline()

    def _set_deadline(self) -> None:
        # A whole number of ticks: the wheel rounds up, and its rounding is no lag.
        ticks = int(self._clock.now() / TICK_S) + PERIOD_TICKS
        self._deadline = ticks * TICK_S
        self._wheel.set(self, self._deadline)
