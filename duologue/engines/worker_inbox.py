"""How a thread of computation is handed messages: senders never wait, the one taker may.

It holds whatever it is sent, since a sender has no way to wait or to be refused: whoever makes one
says what bounds it. This module must not know what the messages mean.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class WorkerInbox(Generic[T]):
    """Many senders, one taker.

    The lock is used as a signal: the taker acquires it to sleep, a sender releases it to wake
    the taker. A sender on the event loop therefore never waits for a lock, and a wake-up costs
    a fifth of a ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._signal = threading.Lock()
        self._signal.acquire()

    def put(self, items: Iterable[T]) -> None:
        """Add items. From any thread."""
        self._items.extend(items)
        # Two senders may both see it locked; the second release then has nothing to say.
        if self._signal.locked():
            with suppress(RuntimeError):
                self._signal.release()

    @property
    def is_empty(self) -> bool:
        """Nothing was put that has not been taken."""
        return not self._items

    def take(self, timeout_s: float | None) -> list[T]:
        """Take all items.

        Args:
            timeout_s: How long to wait for the first one: 0 not at all, ``None`` for ever.
        """
        if not self._items:
            if timeout_s is None:
                self._signal.acquire()
            elif timeout_s > 0:
                self._signal.acquire(timeout=timeout_s)
        taken = []
        while self._items:
            taken.append(self._items.popleft())
        return taken
