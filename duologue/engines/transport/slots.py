"""The life of what a writer has put: who reads it, and when its memory may be used again.

Pure: what comes from readers may come twice, late, in any order, or never. This module must not
know where the payloads lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from duologue.engines.transport.port import Handle

MAX_CLAIMS = 64
"""Reads of one payload, over its life; a flood of them is refused."""


@dataclass(slots=True)
class _Slot:
    """A payload.

    Args:
        claims: Reads that are going on: reader, and the reader's own number.
        settled: Reads that are over; a message of theirs that comes late begins nothing.
    """

    handle: Handle
    claims: set[tuple[str, int]] = field(default_factory=set)
    settled: set[tuple[str, int]] = field(default_factory=set)
    freed: bool = False


class Slots:
    """The payloads of one writer.

    What frees memory returns the handles whose memory may be used again from now on.

    Args:
        place: For handles.
        count: How many payloads there may be.
        first_generation: Larger than any that was handed out for the same place before.
    """

    def __init__(self, place: str, count: int, first_generation: int = 1) -> None:
        self._place = place
        self._count = count
        self._vacant: list[int] = []
        self._used = 0
        self._next_generation = first_generation
        self._slots: dict[int, _Slot] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, size_bytes: int) -> Handle | None:
        """Take a slot; ``None`` where all are taken."""
        if self._vacant:
            number = self._vacant.pop()
        elif self._used < self._count:
            number = self._used
            self._used += 1
        else:
            return None
        handle = Handle(self._place, number, self._next_generation, size_bytes)
        self._next_generation += 1
        self._slots[number] = _Slot(handle)
        return handle

    def holds(self, handle: Handle) -> bool:
        """Tell whether a payload is here and not freed."""
        slot = self._slot(handle)
        return slot is not None and not slot.freed

    def claim(self, handle: Handle, reader: str, number: int) -> bool:
        """A reader begins to read, or asks once more whether it may.

        Args:
            number: The reader's own, for this read; another read has another.
        """
        slot = self._slot(handle)
        claim = (reader, number)
        if slot is None or claim in slot.settled:
            return False
        if claim in slot.claims:
            return True
        if slot.freed or len(slot.claims) + len(slot.settled) >= MAX_CLAIMS:
            return False
        slot.claims.add(claim)
        return True

    def settle(self, handle: Handle, reader: str, number: int) -> list[Handle]:
        """A reader has read, or given up, and touches the memory no more."""
        slot = self._slot(handle)
        if slot is None:
            return []
        slot.claims.discard((reader, number))
        if len(slot.settled) < MAX_CLAIMS:
            slot.settled.add((reader, number))
        return self._vacate(slot)

    def free(self, handle: Handle) -> list[Handle]:
        """Nobody may begin to read any more."""
        slot = self._slot(handle)
        if slot is None:
            return []
        slot.freed = True
        return self._vacate(slot)

    def reader_died(self, reader: str) -> list[Handle]:
        """A reader certainly touches nothing any more, whatever it had begun."""
        done = []
        for slot in list(self._slots.values()):
            slot.claims = {claim for claim in slot.claims if claim[0] != reader}
            done += self._vacate(slot)
        return done

    def free_all(self) -> list[Handle]:
        """As ``free``, of everything."""
        return [each for slot in list(self._slots.values()) for each in self.free(slot.handle)]

    def _slot(self, handle: Handle) -> _Slot | None:
        slot = self._slots.get(handle.slot)
        return slot if slot is not None and slot.handle == handle else None

    def _vacate(self, slot: _Slot) -> list[Handle]:
        if not slot.freed or slot.claims:
            return []
        del self._slots[slot.handle.slot]
        self._vacant.append(slot.handle.slot)
        return [slot.handle]
