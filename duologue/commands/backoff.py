"""How long to wait before something that died is started again. Pure."""

from __future__ import annotations

FIRST_S = 0.1
LONGEST_S = 10.0
STEADY_S = 30.0
"""What has lived for so long died of something new."""


class Backoff:
    """Doubles with each death in a row."""

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def after(self, lived_s: float) -> float:
        """Return how long to wait after a death."""
        if lived_s >= STEADY_S:
            self._next_s = FIRST_S
        wait_s = self._next_s
        self._next_s = min(2 * wait_s, LONGEST_S)
        return wait_s
