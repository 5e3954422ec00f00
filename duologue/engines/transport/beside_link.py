"""The engine's end of a link that has a way past it for large payloads: what any such end does.

It knows what its worker was given and has not read, and what the worker wrote that others are to
read. This module must not know what moves the payloads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from duologue.engines import framing
from duologue.engines.messages import Apart, Cancel, Freed, JobEnded, Report, ToWorker
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import LEAST_BYTES, Lent, Outlook, may_be_large, split
from duologue.engines.transport.port import Handle, Store

Hear = Callable[[Report], None]


class BesideLink:
    """The end of one worker's link; what reads the worker's payloads is in its subclasses.

    Args:
        room_bytes: In each direction.
        relays: What the worker says goes on to another, unread.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, room_bytes: int, relays: bool) -> None:
        self._room_bytes = room_bytes
        self._relays = relays
        self._loop = asyncio.get_running_loop()
        self._store: Store | None = None
        self._outlook = Outlook()
        self._write: Callable[[bytes], None] = _nobody_hears
        self._hear: Hear = _nobody_is_told
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
        """What lies in both directions, as far as the engine knows."""
        return self._ours() + self._theirs()

    @property
    def fill(self) -> float:
        """How full the fuller one is."""
        return max(self._ours(), self._theirs()) / self._room_bytes

    def link_made(self, write: Callable[[bytes], None], hear: Hear) -> None:
        """From now on the worker can be told something, and reports can be told that came late."""
        self._write = write
        self._hear = hear

    def encode(self, messages: Sequence[ToWorker]) -> bytes:
        """Return the frames of messages; what is large and finds room lies beside them.

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

    def hold_back(self, report: Report) -> Report | None:
        """Return what of a report can be heard now; ``hear`` gets the rest."""
        return report

    def worker_died(self) -> None:
        """The process is gone, and so reads and writes nothing any more."""
        if self._dead:
            return
        self._dead = True
        self._write = _nobody_hears
        self._hear = _nobody_is_told
        self._stop()
        self._unread.clear()
        self.unread_bytes = 0
        self._let_go_if_possible()

    def _stop(self) -> None:
        """Read and write nothing for this worker any more."""
        raise NotImplementedError

    def _read_freed(self, message: Freed) -> None:
        for handle in message.handles:
            self._read_by_worker(handle)

    def _fail(self, job: str, code: str, why: str) -> Report:
        """Return the end of a job of which something was lost; the worker is to stop it, too."""
        self._write(framing.encode_messages((Cancel(job),)))
        return Report([JobEnded(job, Outcome.FAILED, code, why)])

    def _ours(self) -> int:
        return 0 if self._dead or self._store is None else self._store.held_bytes

    def _theirs(self) -> int:
        return sum(handle.size_bytes for handle in self._lent)

    def _leave(self, data: bytes) -> Handle | None:
        return None if self._store is None else self._store.put(data)

    def _free(self, handle: Handle) -> None:
        if self._store is not None:
            self._store.free(handle)

    def _put(self, data: bytes | Lent) -> Handle | None:
        lent = data if isinstance(data, Lent) else None
        handle = lent.handle if lent is not None else self._leave(cast(bytes, data))
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
            self._free(handle)
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
            self._let_go_if_possible()

    def _tell_freed(self, *handles: Handle) -> None:
        self._write(framing.encode_apart(Freed(handles)))

    def _let_go_if_possible(self) -> None:
        if self._dead and not self._lent:
            self._let_go()

    def _let_go(self) -> None:
        """The worker is dead, and nobody is to read anything of it."""


def _frames(piece: Apart | list[ToWorker]) -> bytes:
    if isinstance(piece, Apart):
        return framing.encode_apart(piece)
    return framing.encode_messages(piece)


def _nobody_hears(frame: bytes) -> None:
    """The link is not up yet, or not any more."""


def _nobody_is_told(report: Report) -> None:
    """Likewise, or its worker is dead."""
