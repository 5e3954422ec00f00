"""Whether anybody takes in what is said. This module must not know who speaks, or what."""

from __future__ import annotations


class Audience:
    """One session's.

    Args:
        backlog_ms: Speech that may wait for a client which is there; ``None``: nobody asks.
    """

    __slots__ = ("_backlog_ms", "present", "watched")

    def __init__(self, backlog_ms: int | None) -> None:
        self.present = True
        self.watched = backlog_ms is not None
        self._backlog_ms = backlog_ms or 0

    def look(self, *, away: bool, waiting_ms: int) -> bool:
        """Look again, and tell whether it has changed.

        Args:
            away: The connection is lost.
            waiting_ms: Speech that waits. Half of it must go before somebody is there again.
        """
        most = self._backlog_ms if self.present else self._backlog_ms // 2
        present = not away and waiting_ms <= most
        changed = present is not self.present
        self.present = present
        return changed
