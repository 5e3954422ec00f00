"""Payloads in memory that processes of one machine share: copied in once, and out once.

Each writer has a region of its own. It begins with a table that says for each slot where its
payload lies, and of which generation it is; only the writer changes it, and a reader looks at it
before and after it copies. So there is no lock that a process may die with. This module must not
know who tells the writer that a payload was read.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import NamedTuple

from duologue.engines.transport.extents import Extents
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.port import Data, Handle, lost
from duologue.engines.transport.slots import Slots

SLOTS = 256
"""Payloads that one writer may have under way."""

_TABLE_BYTES = SLOTS * 16
_OFFSET, _GENERATION = 0, 1
_NOTHING = 0
"""Of a generation: the slot is vacant."""


class Region(NamedTuple):
    """A part of a memory file that one process writes."""

    start: int
    size_bytes: int

    @property
    def place(self) -> str:
        """Its name in handles."""
        return f"{self.start}+{self.size_bytes}"

    @classmethod
    def at(cls, place: str) -> Region:
        """Read a name.

        Raises:
            ValueError: It is none.
        """
        start, size_bytes = (int(each) for each in place.split("+"))
        if size_bytes < _TABLE_BYTES:
            raise ValueError(f"a region has at least {_TABLE_BYTES} bytes")
        return cls(start, size_bytes)


class SlabStore:
    """The writer of a region.

    Args:
        first_generation: Larger than any that a writer before it handed out.

    Concurrency:
        Belongs to one thread; ``free_later`` alone may be called by another.
    """

    def __init__(self, memory: MemoryFile, region: Region, first_generation: int = 1) -> None:
        self._map = memory.map(region.start, region.size_bytes, writable=True)
        self._view = memoryview(self._map)
        self._table = self._view[:_TABLE_BYTES].cast("Q")
        self._data = self._view[_TABLE_BYTES:]
        for slot in range(SLOTS):
            self._table[2 * slot + _GENERATION] = _NOTHING
        self._extents = Extents(len(self._data))
        self._slots = Slots(region.place, SLOTS, first_generation)
        self._to_free: deque[Handle] = deque(maxlen=2 * SLOTS)

    @property
    def held_bytes(self) -> int:
        """What was put and not freed, in whole pages."""
        return self._extents.taken_bytes

    def put(self, data: Data) -> Handle | None:
        """Copy a payload into the region; ``None`` if there is no room."""
        while self._to_free:
            self.free(self._to_free.popleft())
        size_bytes = len(data)
        offset = self._extents.take(size_bytes)
        if offset is None:
            return None
        handle = self._slots.add(size_bytes)
        if handle is None:
            self._extents.give_back(offset, size_bytes)
            return None
        self._data[offset : offset + size_bytes] = data
        self._table[2 * handle.slot + _OFFSET] = offset
        self._table[2 * handle.slot + _GENERATION] = handle.generation
        return handle

    def free(self, handle: Handle) -> None:
        """Use the memory of a payload again; of one that is gone, this does nothing."""
        for gone in self._slots.free(handle):
            offset = self._table[2 * gone.slot + _OFFSET]
            self._table[2 * gone.slot + _GENERATION] = _NOTHING
            self._extents.give_back(offset, gone.size_bytes)

    def free_later(self, handle: Handle) -> None:
        """Free a payload before the next one is put; from any thread."""
        self._to_free.append(handle)

    def close(self) -> None:
        """Unmap the region. Readers that have it see every payload as lost."""
        for handle in self._slots.free_all():
            self._table[2 * handle.slot + _GENERATION] = _NOTHING
        self._table.release()
        self._data.release()
        self._view.release()
        self._map.close()


class SlabReader:
    """Reads the regions of a memory file.

    Concurrency:
        Belongs to one thread.
    """

    def __init__(self, memory: MemoryFile) -> None:
        self._memory = memory
        self._regions: dict[str, mmap.mmap] = {}

    def get(self, handle: Handle, deadline: float = 0.0) -> bytes:
        """Copy a payload out; nothing is waited for.

        Raises:
            PayloadLost: It was freed, or the handle is of something else.
        """
        with memoryview(self._region(handle)) as view:
            table = view[:_TABLE_BYTES].cast("Q")
            if not (0 <= handle.slot < SLOTS and self._is_there(table, handle)):
                raise lost(handle, "it was freed")
            start = _TABLE_BYTES + table[2 * handle.slot + _OFFSET]
            data = bytes(view[start : start + handle.size_bytes])
            # The writer may have used the memory again while it was copied.
            is_whole = len(data) == handle.size_bytes and self._is_there(table, handle)
            table.release()
        if not is_whole:
            raise lost(handle, "it was freed while it was read")
        return data

    def close(self) -> None:
        """Unmap all regions."""
        while self._regions:
            self._regions.popitem()[1].close()

    @staticmethod
    def _is_there(table: memoryview, handle: Handle) -> bool:
        return bool(table[2 * handle.slot + _GENERATION] == handle.generation != _NOTHING)

    def _region(self, handle: Handle) -> mmap.mmap:
        known = self._regions.get(handle.place)
        if known is None:
            try:
                region = Region.at(handle.place)
                known = self._memory.map(region.start, region.size_bytes, writable=False)
            except ValueError as exc:
                raise lost(handle, "there is no such region") from exc
            self._regions[handle.place] = known
        return known
