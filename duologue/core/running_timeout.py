"""A time-out in time in which this process ran: has something lasted too long?

While a process stands still nobody is read or written, so nothing that others do or leave undone
meanwhile is held against them. Such time shows in looks that come late. This module must not know
what is waited for, nor the time.
"""

from __future__ import annotations

import math

LOOKS = 15
"""How often it is looked in all, so that no more than a fifteenth of a limit goes by unseen."""


class RunningTimeout:
    """Watches one thing after the other, each named by when it began.

    Args:
        limit_s: How long one may last.
    """

    __slots__ = ("_limit_s", "_look_s", "_looked_at", "_since", "_stood_still_s", "_was_late")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._look_s = limit_s / LOOKS
        self._since = math.nan
        self._looked_at = 0.0
        self._stood_still_s = 0.0
        self._was_late = False

    def due_at(self, since: float) -> float:
        """When ``is_over`` is to be asked next, for what has lasted since then."""
        if since != self._since:
            return since + self._look_s
        look_at = self._looked_at + self._look_s
        return look_at if self._was_late else min(look_at, self._ends_at())

    def is_over(self, since: float, now: float) -> bool:
        """Tell whether what has lasted since then has lasted too long. May be asked early.

        A look that comes late is never the last one, since what has come meanwhile may lie unread;
        unless the one before it was late too, or a process that is always late would never end
        anything.
        """
        late_s = now - self.due_at(since)
        if since != self._since:
            self._since, self._stood_still_s, self._was_late = since, 0.0, False
        self._looked_at = now
        if late_s <= self._look_s:
            self._was_late = False
        elif not self._was_late:
            self._was_late = True
            self._stood_still_s += late_s
            return False
        return now >= self._ends_at()

    def _ends_at(self) -> float:
        return self._since + self._limit_s + self._stood_still_s
