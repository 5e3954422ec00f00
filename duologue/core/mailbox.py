"""A bounded queue whose ``put`` never waits.

The sender decides what to shed; a full mailbox refuses and changes nothing. This module must
not know what the items mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from duologue.core.errors import LimitExceeded

T = TypeVar("T")


class MailboxFull(LimitExceeded):
    """The item was refused; nothing changed. Raised by ``Mailbox.put``."""

    default_code = "rate_limited"


class Mailbox(Generic[T]):
    """First in, first out, at most ``capacity`` items.

    Concurrency:
        Belongs to the event loop; other threads hand over through ``loop.call_soon_threadsafe``.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.refused = 0
        self._items: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def put(self, item: T) -> None:
        """Add an item.

        Raises:
            MailboxFull: ``capacity`` items are waiting.
        """
        if len(self._items) >= self.capacity:
            self.refused += 1
            raise MailboxFull(
                f"{len(self._items)} inputs are waiting, the limit is {self.capacity}"
            )
        self._items.append(item)

    def take(self) -> T | None:
        """Remove and return the oldest item, or ``None`` when there is none."""
        return self._items.popleft() if self._items else None
