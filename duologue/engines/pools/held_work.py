"""Which workers of a stage hold their work back, and whose word for it is due: pure.

A worker answers each order to hold, so that a pause is over when no step is in progress anywhere.
This module must not know what is held, nor the rest of a stage's life.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class HeldWork:
    """One stage's."""

    def __init__(self) -> None:
        self.wanted = False
        """Work is to be held."""
        self._due: dict[str, int] = {}
        """By replica that was told to hold: how many of its answers are due."""

    @property
    def late(self) -> Sequence[str]:
        """Whose answers are due."""
        return [replica for replica, count in self._due.items() if count]

    def hold(self, replicas: Iterable[str]) -> Sequence[str]:
        """Hold the work of replicas; returns whom to tell."""
        self.wanted = True
        told = list(replicas)
        for replica in told:
            self._due[replica] = self._due.get(replica, 0) + 1
        return told

    def release(self) -> Sequence[str]:
        """Let work go on; returns whom to tell. Their earlier answers may still come."""
        told = list(self._due) if self.wanted else []
        self.wanted = False
        return told

    def on_held(self, replica: str) -> None:
        """A replica has answered."""
        count = self._due.get(replica, 0)
        if count:
            self._due[replica] = count - 1

    def on_lost(self, replica: str) -> None:
        """A replica has lost its process, and with it what was held."""
        self._due.pop(replica, None)
