"""Which windows are worth a message: an idle microphone must not cost one per window.

This module must not know detectors or jobs.
"""

from __future__ import annotations

from duologue.core.audio import ms_to_samples

QUIET_BELOW = 0.1
"""A window below this probability is quiet."""

QUIET_AFTER_MS = 2000
"""So much quiet in a row is reported window by window: turns end well within it."""

REMINDER_MS = 1000
"""After that, one report in this time says that it is still quiet."""


class QuietGate:
    """Admits every window while anything happens, and one a second in long quiet.

    So between two admitted windows that are further apart than one window, all were quiet.

    Units:
        Samples at ``rate_hz``.
    """

    def __init__(self, rate_hz: int) -> None:
        self._quiet_after = ms_to_samples(QUIET_AFTER_MS, rate_hz)
        self._reminder = ms_to_samples(REMINDER_MS, rate_hz)
        self._quiet_since: int | None = None
        self._admitted = 0

    def admits(self, probability: float, start: int, end: int) -> bool:
        """Tell whether the window from ``start`` to ``end`` is worth a message."""
        if probability >= QUIET_BELOW:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = start
        long_quiet = self._quiet_since is not None and end - self._quiet_since > self._quiet_after
        if long_quiet and end - self._admitted < self._reminder:
            return False
        self._admitted = end
        return True
