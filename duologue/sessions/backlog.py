"""What a client has sent faster than it is taken in: whole commands, and the rest of a long append.

Minutes of audio in one message are allowed, but must not hold the loop for everybody: they are
taken in slices, a few at a time, and what the client says meanwhile waits its turn behind them.
This module must not know sessions or time.
"""

from __future__ import annotations

from duologue.core.mailbox import Mailbox
from duologue.protocol.commands import AppendAudio
from duologue.sessions.inputs import SessionInput

SLICE_BYTES = 48_000
"""A second of 24 kHz PCM, which takes about two milliseconds to convert."""


def is_long(item: SessionInput) -> bool:
    """Tell whether an input is an append that is better taken in slices."""
    return isinstance(item, AppendAudio) and len(item.audio) > SLICE_BYTES


class Backlog:
    """Inputs of one client in order, bounded in number."""

    __slots__ = (
        "_items",
        "_long",
        "_next",
        "_offset",
        "empty",
    )

    def __init__(self, capacity: int) -> None:
        self._items: Mailbox[SessionInput] = Mailbox(capacity)
        self._next: SessionInput | None = None
        self._long: AppendAudio | None = None
        self._offset = 0
        self.empty = True
        """Nothing waits. An attribute, since it is looked at several times for every message."""

    def put(self, item: SessionInput) -> None:
        """Add an input.

        Raises:
            MailboxFull: Too many wait; nothing changed.
        """
        self._items.put(item)
        self.empty = False

    def take(self) -> SessionInput | None:
        """Remove and return the next whole input; a long append is returned whole, once."""
        item, self._next = self._next, None
        if item is None:
            item = self._items.take()
        self._note()
        return item

    def take_short(self) -> SessionInput | None:
        """Remove and return the next input, unless it is, or waits behind, a long append."""
        if self._long is not None:
            return None
        item = self.take()
        if item is not None and is_long(item):
            self._next = item
            self.empty = False
            return None
        return item

    def slice_up(self, append: AppendAudio) -> None:
        """Let ``take_slice`` return this append piece by piece, before anything else."""
        self._long = append
        self._offset = 0
        self.empty = False

    def take_slice(self) -> AppendAudio | None:
        """Remove and return the next slice of the long append that is being taken in."""
        append = self._long
        if append is None:
            return None
        piece = append.audio[self._offset : self._offset + SLICE_BYTES]
        self._offset += len(piece)
        if self._offset >= len(append.audio):
            self._long = None
            self._note()
        return AppendAudio(audio=piece, event_id=append.event_id)

    def _note(self) -> None:
        self.empty = self._long is None and self._next is None and not self._items
