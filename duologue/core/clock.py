"""The only place that reads a clock.

``now`` everywhere means seconds of one monotonic clock of this process. Wall time appears in
logs and on the wire alone.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time; a test hands in one that it moves itself."""

    def now(self) -> float:
        """Seconds on a monotonic clock whose zero means nothing."""
        ...

    def wall_time(self) -> float:
        """Seconds since 1970, for the wire and for logs."""
        ...


class SystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        # Not a method around it: the time is asked for several times for every frame.
        self.now = time.monotonic

    def wall_time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def cpu_time(self) -> float:
        """CPU seconds, user and system, of this process."""
        return time.process_time()
