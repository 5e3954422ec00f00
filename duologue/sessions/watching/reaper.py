"""The reaper: ends sessions whose end has failed, however often it takes.

Such a session keeps its place meanwhile, since something may still run for it. This module must not
know what letting go consists of.
"""

from __future__ import annotations

from typing import Protocol

from duologue.core.clock import Clock
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.telemetry import Counter, get_logger

PERIOD_S = 5.0


class Unfinished(Protocol):
    """A session that is over, and of which something is left."""

    id: str

    def finish(self) -> None:
        """Let go of everything; whatever cannot be let go of raises."""
        ...


class Reaper:
    """One for all sessions; on the timer wheel only while there is something to do.

    Args:
        reaped: Counts those that were ended at last.
    """

    def __init__(self, clock: Clock, wheel: TimerWheel, reaped: Counter) -> None:
        self._clock = clock
        self._wheel = wheel
        self._reaped = reaped
        self._left: dict[Unfinished, None] = {}
        self._log = get_logger("sessions")

    def __len__(self) -> int:
        return len(self._left)

    def add(self, session: Unfinished, exc: Exception) -> None:
        """The end of a session has failed."""
        self._log.error("session_end_failed", session_id=session.id, exc_info=exc)
        self._left[session] = None
        self._wheel.set(self, self._clock.now() + PERIOD_S)

    def on_timer(self) -> None:
        """Try once more."""
        left, self._left = self._left, {}
        for session in left:
            failures: list[Exception] = []
            with CrashBarrier(failures.append):
                session.finish()
            if failures:
                self.add(session, failures[0])
            else:
                self._reaped.inc()
                self._log.warning("session_reaped", session_id=session.id)
