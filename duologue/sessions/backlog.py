"""What a client has sent faster than it is taken in: whole commands, and the rest of a long append.

Minutes of audio in one message are allowed, but must not hold the loop for everybody: they are
taken in slices, a few at a time, and what the client says meanwhile waits its turn behind them.
Bounded in number and in bytes. This module must not know sessions or time.
"""

from __future__ import annotations

import sys

import msgspec

from duologue.core.mailbox import Mailbox, MailboxFull
from duologue.protocol.append_audio import AppendAudio
from duologue.sessions.inputs import Rejected, SessionInput

SLICE_BYTES = 48_000
"""A second of 24 kHz PCM, which takes about two milliseconds to convert."""


BACKLOG_BYTES = 32 << 20
"""What may wait unless the settings say otherwise: the largest append, and as much behind it."""

INPUT_BYTES = 256
"""What an input is booked at besides its content, rounded up."""

_WITHOUT_PARTS = frozenset((str, bytes, int, float, bool, type(None), msgspec.UnsetType))


def is_long(item: SessionInput) -> bool:
    """Tell whether an input is an append that is better taken in slices."""
    return isinstance(item, AppendAudio) and len(item.audio) > SLICE_BYTES


def weight(item: SessionInput) -> int:
    """What an input counts as while it waits, in bytes.

    Quickly told of audio; what else a client says is looked through whole, so ask once.
    """
    if isinstance(item, AppendAudio):
        return INPUT_BYTES + len(item.audio)
    return INPUT_BYTES + _content_bytes(item.error if isinstance(item, Rejected) else item)


def _content_bytes(command: object) -> int:
    """What a command and all that is in it takes up in memory; what is shared counts each time."""
    size = 0
    left = [command]
    while left:
        value = left.pop()
        size += sys.getsizeof(value)
        if type(value) in _WITHOUT_PARTS:
            continue
        if isinstance(value, msgspec.Struct):
            left.extend(msgspec.structs.astuple(value))
        elif isinstance(value, dict):
            left.extend(value)
            left.extend(value.values())
        elif isinstance(value, list | tuple | frozenset):
            left.extend(value)
    return size


class Backlog:
    """Inputs of one client in order.

    Args:
        capacity: How many may wait.
        max_bytes: What they may weigh together; the largest append always fits into an empty one.
    """

    __slots__ = (
        "_items",
        "_long",
        "_next",
        "_offset",
        "capacity",
        "empty",
        "held_bytes",
        "max_bytes",
    )

    def __init__(self, capacity: int, max_bytes: int = BACKLOG_BYTES) -> None:
        self.capacity = capacity
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self._items: Mailbox[tuple[SessionInput, int]] = Mailbox(capacity)
        self._next: AppendAudio | None = None
        self._long: AppendAudio | None = None
        self._offset = 0
        self.empty = True
        """Nothing waits. An attribute, since it is looked at several times for every message."""

    def __len__(self) -> int:
        return len(self._items) + (self._next is not None) + (self._long is not None)

    def put(self, item: SessionInput) -> None:
        """Add an input.

        Raises:
            MailboxFull: Too many wait, or too much; nothing changed.
        """
        size = weight(item)
        if self.held_bytes + size > self.max_bytes and not self.empty:
            raise MailboxFull(
                f"{self.held_bytes} bytes of input wait to be taken in, and {size} more are over "
                f"the limit of {self.max_bytes}; send more slowly"
            )
        self._items.put((item, size))
        self.held_bytes += size
        self.empty = False

    def take(self) -> SessionInput | None:
        """Remove and return the next whole input; a long append is returned whole, once."""
        item: SessionInput | None = self._next
        if self._next is not None:
            self.held_bytes -= weight(self._next)
            self._next = None
        elif (waiting := self._items.take()) is not None:
            item, size = waiting
            self.held_bytes -= size
        self._note()
        return item

    def take_short(self) -> SessionInput | None:
        """Remove and return the next input, unless it is, or waits behind, a long append."""
        if self._long is not None:
            return None
        item = self.take()
        if isinstance(item, AppendAudio) and is_long(item):
            self._next = item
            self.held_bytes += weight(item)
            self.empty = False
            return None
        return item

    def slice_up(self, append: AppendAudio) -> None:
        """Let ``take_slice`` return this append piece by piece, before anything else."""
        self._long = append
        self._offset = 0
        self.held_bytes += weight(append)
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
            self.held_bytes -= weight(append)  # until then it is held whole
            self._note()
        return AppendAudio(audio=piece, event_id=append.event_id)

    def count_held(self) -> int:
        """Count bytes afresh; equals ``held_bytes``. For tests."""
        waiting = (*(item for item, _ in self._items), self._next, self._long)
        return sum(weight(item) for item in waiting if item is not None)

    def _note(self) -> None:
        self.empty = self._long is None and self._next is None and not self._items
