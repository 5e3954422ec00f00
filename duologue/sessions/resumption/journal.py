"""The journal: what a client was sent and has not acknowledged, for the next connection.

Bounded in bytes; where they do not suffice, sound goes first, then the oldest of the rest, and who
asks for what is gone is told so. This module must not know sessions, connections or time.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from typing import Protocol

from duologue.protocol.events import Event
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.port import Delivery
from duologue.sessions.speaking.output_buffer import booked_bytes

SPARE_SHARE = 8
"""The part of the limit that is freed, besides what is needed, when it is reached."""


class Holder(Protocol):
    """What holds bytes."""

    held_bytes: int


class Gap(Enum):
    """What is missing of what a client asks for."""

    NONE = "none"
    SOUND = "sound"
    """Only sound; every other event is there."""

    EVENTS = "events"


class Journal:
    """Numbered events of one session, oldest first.

    Args:
        max_bytes: What it may hold together with what ``beside`` holds.
        beside: What else holds bytes in the same account.
    """

    __slots__ = (
        "_beside",
        "_entries",
        "_lost_event",
        "_lost_sound",
        "_max_bytes",
        "_to_replay",
        "acknowledged",
        "broken_off",
        "held_bytes",
    )

    def __init__(self, max_bytes: int, beside: Holder) -> None:
        self.acknowledged = 0
        """The number up to which the client has everything."""

        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._beside = beside
        self._entries: deque[Delivery] = deque()
        self._lost_sound = 0
        self._lost_event = 0
        """The newest of each that was dropped before it was acknowledged; 0: none."""

        self.broken_off = False
        """Something that was to be sent again was dropped for want of room meanwhile."""

        self._to_replay = 0
        """How many of the entries, the newest ones, are still to be sent again."""

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, deliveries: Iterable[Delivery]) -> None:
        """Keep events that were sent. Numbers grow."""
        held = self.held_bytes
        for delivery in deliveries:
            self._entries.append(delivery)
            held += booked_bytes(delivery.event)
        self.held_bytes = held
        if held + self._beside.held_bytes > self._max_bytes:
            self.fit()

    def acknowledge(self, seq: int) -> None:
        """Drop what the client has: everything up to a number."""
        entries = self._entries
        while entries and entries[0].seq <= seq:
            self.held_bytes -= booked_bytes(entries.popleft().event)
        if seq > self.acknowledged:
            self.acknowledged = seq
        if self._to_replay > len(entries):
            self._to_replay = len(entries)

    def withdraw(self, item_id: str) -> None:
        """An interruption takes back the sound of an item: nobody is to hear it any more.

        What was written beside it stays: its end repeats the text, and clients add up the pieces.
        """
        self._drop_sound(lambda sound: sound.item_id == item_id)

    def withdraw_all(self, beside: Collection[str]) -> None:
        """The same for everything, apart from the responses ``beside`` the conversation."""
        self._drop_sound(lambda sound: sound.response_id not in beside)

    def fit(self) -> None:
        """Drop what does not fit: sound first, oldest first, then whatever is oldest.

        More than is needed goes at once, so that a client that never acknowledges does not cause
        a search for every event.
        """
        excess = self.held_bytes + self._beside.held_bytes - self._max_bytes
        if excess <= 0:
            return
        excess += self._max_bytes // SPARE_SHARE
        waited = self._to_replay
        excess -= self._drop_oldest_sound(excess)
        while excess > 0 and self._entries:
            oldest = self._entries.popleft()
            self._lost_event = oldest.seq
            size = booked_bytes(oldest.event)
            excess -= size
            self.held_bytes -= size
        self._to_replay = min(self._to_replay, len(self._entries))
        self.broken_off = self.broken_off or self._to_replay < waited

    def after(self, seq: int) -> Gap:
        """Tell what is missing of what follows an event."""
        if seq < self._lost_event:
            return Gap.EVENTS
        return Gap.SOUND if seq < self._lost_sound else Gap.NONE

    # Sending again: from ``rewind`` on, ``replay`` returns one event after the other

    def rewind(self, seq: int) -> None:
        """Let what follows an event be sent again."""
        self.broken_off = False
        self._to_replay = sum(1 for entry in self._entries if entry.seq > seq)

    @property
    def replaying(self) -> bool:
        """Whether something is still to be sent again."""
        return self._to_replay > 0

    def replay(self) -> Delivery:
        """Return the next event that is to be sent again. It stays until it is acknowledged."""
        entry = self._entries[-self._to_replay]
        self._to_replay -= 1
        return entry

    def still_to_replay(self) -> Iterator[Event]:
        """Yield the events that are to be sent again."""
        first = len(self._entries) - self._to_replay
        return (entry.event for entry in itertools.islice(self._entries, first, None))

    def clear(self) -> None:
        """Forget everything: the client was told the state of things instead."""
        if self._entries:
            self.acknowledge(self._entries[-1].seq)

    def count_held(self) -> int:
        """Count bytes afresh; equals ``held_bytes``. For tests."""
        return sum(booked_bytes(entry.event) for entry in self._entries)

    def _drop_oldest_sound(self, excess: int) -> int:
        freed = 0

        def goes(sound: AudioDelta) -> bool:
            nonlocal freed
            if freed >= excess:
                return False
            freed += booked_bytes(sound)
            return True

        self._lost_sound = max(self._lost_sound, self._drop_sound(goes))
        return freed

    def _drop_sound(self, goes: Callable[[AudioDelta], bool]) -> int:
        """Drop some sound; returns the number of the last that went."""
        kept: deque[Delivery] = deque()
        last = 0
        first_to_replay = len(self._entries) - self._to_replay
        for index, entry in enumerate(self._entries):
            if isinstance(entry.event, AudioDelta) and goes(entry.event):
                self.held_bytes -= booked_bytes(entry.event)
                last = entry.seq
                if index >= first_to_replay:
                    self._to_replay -= 1
            else:
                kept.append(entry)
        self._entries = kept
        return last
