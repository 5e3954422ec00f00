"""The engine's end of links with a slab beside them.

One memory file serves an executor. Each of its workers has two regions: one that it writes, and
one that the engine writes for it, so that a worker that reads nothing takes no room from others.
What one worker wrote and another is to read is not read here: the engine lends it on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import Apart, Cancel, Freed, JobEnded, JobOutput, Report, ToWorker
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import LEAST_BYTES, Lent, Outlook, may_be_large, split, whole
from duologue.engines.transport.memory_file import PAGE_BYTES, MemoryFile
from duologue.engines.transport.port import Handle
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


class EngineEnd:
    """The end of one worker's link.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, slab: SharedSlab, memory: MemoryFile, seat: Seat, relays: bool) -> None:
        self.seat = seat
        self._slab = slab
        self._relays = relays
        self._loop = asyncio.get_running_loop()
        self._store = SlabStore(memory, seat.to_worker, seat.first_generation)
        self._reader = SlabReader(memory)
        self._outlook = Outlook()
        self._write: Callable[[bytes], None] = _nobody_hears
        self._lent: dict[Handle, int] = {}
        """What this worker wrote and others are to read, and how often it was lent."""

        self._unread: dict[Handle, list[Lent | None]] = {}
        """What this worker is to read; not ``None``: what others wrote."""

        self.given_bytes = 0
        """All that it was ever given; ``unread_bytes``: what it has not read of that."""

        self.unread_bytes = 0
        self._dead = False

    @property
    def held_bytes(self) -> int:
        """What lies in both regions, as far as the engine knows."""
        return self._ours() + self._theirs()

    @property
    def fill(self) -> float:
        """How full the fuller one is."""
        return max(self._ours(), self._theirs()) / self.seat.to_worker.size_bytes

    def link_made(self, write: Callable[[bytes], None]) -> None:
        """From now on the worker can be told something."""
        self._write = write

    def encode(self, messages: Sequence[ToWorker]) -> bytes:
        """Return the frames of messages; what is large and finds room lies in the slab.

        Raises:
            EngineError: What is too large for a frame finds no room.
        """
        together = b""
        if not self._outlook.is_large:
            # Messages of calls come this way: no more than two comparisons for a batch of them.
            try:
                together = framing.encode_messages(messages)
            except framing.NotWithin:
                pass
            else:
                if len(together) < LEAST_BYTES or not may_be_large(len(messages), len(together)):
                    return together
        pieces = list(split(messages, self._put))
        found = any(isinstance(piece, Apart) for piece in pieces)
        self._outlook.saw(found)
        if together and not found:
            return together
        return b"".join(_frames(piece) for piece in pieces)

    def take(self, body: bytes) -> Report | None:
        """Read what came apart from the reports, and return what it leads to."""
        message = framing.decode_apart(body)
        if isinstance(message, Freed):
            for handle in message.handles:
                self._read_by_worker(handle)
            return None
        if self._relays:
            return Report([cast(JobOutput, whole(message, self._lend))])
        try:
            return Report([cast(JobOutput, whole(message, self._reader.get))])
        except EngineError as exc:
            job = message.message.job
            self._write(framing.encode_messages((Cancel(job),)))
            return Report([JobEnded(job, Outcome.FAILED, exc.code, exc.message)])
        finally:
            self._tell_freed(*(part.handle for part in message.parts))

    def worker_died(self) -> None:
        """The process is gone, and so reads and writes nothing any more."""
        if self._dead:
            return
        self._dead = True
        self._write = _nobody_hears
        self._store.close()
        self._reader.close()
        self._unread.clear()
        self.unread_bytes = 0
        self._vacate_if_possible()

    def _ours(self) -> int:
        return 0 if self._dead else self._store.held_bytes

    def _theirs(self) -> int:
        return sum(handle.size_bytes for handle in self._lent)

    def _put(self, data: bytes | Lent) -> Handle | None:
        lent = data if isinstance(data, Lent) else None
        handle = lent.handle if lent is not None else self._store.put(cast(bytes, data))
        if handle is not None:
            self._unread.setdefault(handle, []).append(lent)
            self.given_bytes += handle.size_bytes
            self.unread_bytes += handle.size_bytes
        return handle

    def _read_by_worker(self, handle: Handle) -> None:
        unread = self._unread.get(handle)
        if unread is None:
            return
        self.unread_bytes -= handle.size_bytes
        if unread.pop() is None:
            self._store.free(handle)
        if not unread:
            del self._unread[handle]

    def _lend(self, handle: Handle) -> Lent:
        self._lent[handle] = self._lent.get(handle, 0) + 1
        return Lent(handle, self._come_back)

    def _come_back(self, handle: Handle) -> None:
        # The last who refers to something may be any thread; the loop may be over by then.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._came_back, handle)

    def _came_back(self, handle: Handle) -> None:
        self._lent[handle] -= 1
        if not self._lent[handle]:
            del self._lent[handle]
            self._tell_freed(handle)
            self._vacate_if_possible()

    def _tell_freed(self, *handles: Handle) -> None:
        self._write(framing.encode_apart(Freed(handles)))

    def _vacate_if_possible(self) -> None:
        if self._dead and not self._lent and self in self._slab.ends:
            self._slab.vacate(self)


def _frames(piece: Apart | list[ToWorker]) -> bytes:
    if isinstance(piece, Apart):
        return framing.encode_apart(piece)
    return framing.encode_messages(piece)


def _nobody_hears(frame: bytes) -> None:
    """The link is not up yet, or not any more."""
