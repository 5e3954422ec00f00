"""A worker's end of a link with a slab beside it. This module must not know jobs."""

from __future__ import annotations

from typing import cast

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Append,
    Cancel,
    Freed,
    JobEnded,
    Open,
    Report,
    ToWorker,
)
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import whole
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.report_encoder import ReportEncoder
from duologue.engines.transport.slab import SlabReader, SlabStore
from duologue.engines.transport.slab_seat import Seat


class WorkerEnd:
    """Encodes reports, and reads what the engine says beside its messages.

    Concurrency:
        ``encode`` belongs to the thread that works, ``take`` to the one that reads the link.
    """

    def __init__(self, memory: MemoryFile, seat: Seat) -> None:
        self._store = SlabStore(memory, seat.from_worker, seat.first_generation)
        self._reader = SlabReader(memory)
        self.encode = ReportEncoder(self._store.put).encode

    def take(self, body: bytes) -> tuple[list[ToWorker], bytes]:
        """Read what came apart from the messages.

        Returns:
            The messages that it leads to, and what is to be said to the engine.
        """
        message = framing.decode_apart(body)
        if isinstance(message, Freed):
            for handle in message.handles:
                self._store.free_later(handle)
            return [], b""
        freed = framing.encode_apart(Freed(tuple(part.handle for part in message.parts)))
        try:
            found = cast(Open | Append, whole(message, self._reader.get))
        except EngineError as exc:
            job = message.message.job
            ended = JobEnded(job, Outcome.FAILED, exc.code, exc.message)
            return [Cancel(job)], freed + framing.encode(Report([ended]))
        return [found], freed
