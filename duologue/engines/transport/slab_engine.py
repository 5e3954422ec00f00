"""The engine's end of links with a slab beside them.

One memory file serves an executor. Each of its workers has two regions: one that it writes, and
one that the engine writes for it, so that a worker that reads nothing takes no room from others.
What one worker wrote and another is to read is not read here: the engine lends it on.
"""

from __future__ import annotations

from typing import cast

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import Freed, JobOutput, Report
from duologue.engines.transport.apart import whole
from duologue.engines.transport.beside_link import BesideLink
from duologue.engines.transport.memory_file import PAGE_BYTES, MemoryFile
from duologue.engines.transport.slab import Region, SlabReader, SlabStore
from duologue.engines.transport.slab_seat import Seat

_LIFE = 1 << 32
"""Generations that a worker may hand out in its life."""


class SharedSlab:
    """The memory, and who sits where. There is none while nobody sits.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self) -> None:
        self.memory: MemoryFile | None = None
        self.ends: set[EngineEnd] = set()
        self._vacant: dict[int, list[tuple[Region, Region]]] = {}
        self._lives = 0

    @property
    def held_bytes(self) -> int:
        """What was put by the engine or its workers, and not read by all who shall."""
        return sum(end.held_bytes for end in self.ends)

    @property
    def fill(self) -> float:
        """How full the fullest region is."""
        return max((end.fill for end in self.ends), default=0.0)

    def enlist(self, size_bytes: int, relays: bool) -> EngineEnd:
        """Give a worker a seat.

        Args:
            size_bytes: Of each of its regions.
            relays: What it says goes on to another worker, unread.

        Raises:
            OSError: The system has no such memory to give.
        """
        if self.memory is None:
            self.memory = MemoryFile.create("duologue-slab")
        size_bytes = -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
        if vacant := self._vacant.get(size_bytes):
            regions = vacant.pop()
        else:
            starts = self.memory.grow(size_bytes), self.memory.grow(size_bytes)
            regions = Region(starts[0], size_bytes), Region(starts[1], size_bytes)
        self._lives += 1
        seat = Seat(*regions, self._lives * _LIFE)
        end = EngineEnd(self, self.memory, seat, relays)
        self.ends.add(end)
        return end

    def vacate(self, end: EngineEnd) -> None:
        """Nobody reads or writes the regions of a seat any more."""
        self.ends.discard(end)
        memory = cast(MemoryFile, self.memory)
        if not self.ends:
            self.memory = None
            self._vacant.clear()
            memory.close()
            return
        regions = end.seat.to_worker, end.seat.from_worker
        for region in regions:
            memory.discard(*region)
        self._vacant.setdefault(regions[0].size_bytes, []).append(regions)


class EngineEnd(BesideLink):
    """The end of one worker's link.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, slab: SharedSlab, memory: MemoryFile, seat: Seat, relays: bool) -> None:
        super().__init__(seat.to_worker.size_bytes, relays)
        self.seat = seat
        self._slab = slab
        self._store = self._region = SlabStore(memory, seat.to_worker, seat.first_generation)
        self._reader = SlabReader(memory)

    def take(self, body: bytes) -> Report | None:
        """Read what came apart from the reports, and return what it leads to."""
        message = framing.decode_apart(body)
        if isinstance(message, Freed):
            self._read_freed(message)
            return None
        if self._relays:
            return Report([cast(JobOutput, whole(message, self._lend))])
        try:
            return Report([cast(JobOutput, whole(message, self._reader.get))])
        except EngineError as exc:
            return self._fail(message.message.job, exc.code, exc.message)
        finally:
            self._tell_freed(*(part.handle for part in message.parts))

    def _stop(self) -> None:
        self._region.close()
        self._reader.close()

    def _let_go(self) -> None:
        if self in self._slab.ends:
            self._slab.vacate(self)
