"""A worker's end of a link with a slab beside it. This module must not know jobs."""

from __future__ import annotations

from typing import cast

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Apart,
    Append,
    Cancel,
    Freed,
    FromWorker,
    JobEnded,
    Open,
    Report,
    ToWorker,
)
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import LEAST_BYTES, Outlook, Put, may_be_large, split, whole
from duologue.engines.transport.memory_file import MemoryFile
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
        self._outlook = Outlook()

    def encode(self, report: Report) -> bytes:
        """Return the frames of a report; what is large and finds room lies in the slab.

        Raises:
            EngineError: What is too large for a frame finds no room.
        """
        together = b""
        if not self._outlook.is_large:
            together = framing.encode(report)
            if len(together) < LEAST_BYTES or not may_be_large(len(report.messages), len(together)):
                return together
        pieces = list(split(report.messages, cast(Put, self._store.put)))
        found = any(isinstance(piece, Apart) for piece in pieces)
        self._outlook.saw(found)
        if not found:
            return together or framing.encode(report)
        frames = [_frame(piece) for piece in pieces]
        return b"".join((*frames, framing.encode(Report([], report.step_s))))

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


def _frame(piece: Apart | list[FromWorker]) -> bytes:
    if isinstance(piece, Apart):
        return framing.encode_apart(piece)
    return framing.encode(Report(piece))
