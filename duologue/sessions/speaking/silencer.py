"""Who still holds sound that was said, and is told when nothing of it is to be heard any more.

What waits in the output buffer is dropped where it lies; this is about what has left it. The module
must not know why nothing is to be heard, nor what is done about it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class SoundHolder(Protocol):
    """Keeps sound that was said, for a while.

    Concurrency:
        Called on the event loop; no method may raise or wait.
    """

    def withdraw(self, item_id: str) -> None:
        """Drop the sound of an item."""
        ...

    def withdraw_all(self, beside: Collection[str]) -> None:
        """Drop all sound, apart from that of the responses ``beside`` the conversation."""
        ...


class Silencer:
    """The holders of one session."""

    __slots__ = ("connection", "journal")

    def __init__(self) -> None:
        self.journal: SoundHolder | None = None
        """Keeps what may be sent again, where the session may be resumed."""

        self.connection: SoundHolder | None = None
        """Has sound under way that an event could not overtake; of the latest connection alone."""

    def withdraw(self, item_id: str) -> None:
        """Nothing more of an item is to be heard."""
        if self.journal is not None:
            self.journal.withdraw(item_id)
        if self.connection is not None:
            self.connection.withdraw(item_id)

    def withdraw_all(self, beside: Collection[str]) -> None:
        """Nothing said so far is to be heard, but for these responses."""
        if self.journal is not None:
            self.journal.withdraw_all(beside)
        if self.connection is not None:
            self.connection.withdraw_all(beside)
