"""Keys of a telephone, put together to what the caller meant.

This module must not know what becomes of it.
"""

from __future__ import annotations

KEYS = frozenset("0123456789*#ABCD")
ENTER = "#"
MAX_KEYS = 32


class Keypad:
    """Collects keys until the caller pauses, presses ``#``, or has pressed enough.

    Args:
        pause_s: How long a pause ends an entry.
    """

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._keys = ""
        self._ends_at: float | None = None

    def press(self, key: str, now: float) -> str | None:
        """Take a key; returns the entry that it ends. What is no key is passed over."""
        if key not in KEYS:
            return None
        self._keys += key
        self._ends_at = now + self._pause_s
        return self._entry() if key == ENTER or len(self._keys) >= MAX_KEYS else None

    def next_deadline(self) -> float | None:
        """When ``on_timer`` is due."""
        return self._ends_at

    def on_timer(self, now: float) -> str | None:
        """Return the entry that time has ended."""
        return self._entry() if self._ends_at is not None and now >= self._ends_at else None

    def _entry(self) -> str:
        entry, self._keys, self._ends_at = self._keys, "", None
        return entry
