"""Reads payloads of other processes and hosts in a thread of its own, one after the other.

Each has a deadline of its own, and time is up at once for one that nobody wants any more. This
module must not know what is read, nor for whom.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import StageTimeout
from duologue.engines.transport.port import Handle, Reader, SettlesLater
from duologue.engines.worker_inbox import WorkerInbox

_TIME_IS_UP = float("inf")


class Wanted(Protocol):
    """One thing to be read."""

    @property
    def dropped(self) -> bool:
        """Nobody wants it any more."""
        ...


Get = Callable[[Handle], bytes]
Read = Callable[[Get], None]
"""Reads whatever it needs by a function that raises ``EngineError``, and says what came of it."""


class Fetcher:
    """The thread, which begins with the first payload.

    Args:
        open_reader: Makes the reader, in the thread; its clock is the one that it is given.
        timeout_s: For each payload, from when its read begins.

    Concurrency:
        ``fetch`` belongs to one thread, ``close`` may come from any. How many wait is bounded by
        those who put the payloads: each has a number of slots.
    """

    def __init__(
        self,
        name: str,
        open_reader: Callable[[Clock], Reader],
        timeout_s: float,
        clock: Clock | None = None,
    ) -> None:
        self._name = name
        self._open_reader = open_reader
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._inbox: WorkerInbox[tuple[Wanted, Read] | None] = WorkerInbox()
        self._thread: threading.Thread | None = None
        self._reader: Reader | None = None
        self._current: Wanted | None = None
        self._closed = False

    def fetch(self, wanted: Wanted, read: Read) -> None:
        """Let the thread read, after what it was given before.

        ``read`` is called in any case: what was dropped until then, it cannot get.
        """
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._inbox.put(((wanted, read),))

    def close(self) -> None:
        """Read nothing more; what is being read is given up. Waits for nothing."""
        self._closed = True
        self._inbox.put((None,))

    # Clock, for the reader: it gives up when time is up

    def now(self) -> float:
        """The time, or the end of it for a read that nobody wants any more."""
        current = self._current
        if self._closed or (current is not None and current.dropped):
            return _TIME_IS_UP
        return self._clock.now()

    def wall_time(self) -> float:
        """As of any clock."""
        return self._clock.wall_time()

    def _run(self) -> None:
        while not self._closed:
            for order in self._inbox.take(None):
                if order is not None and not self._closed:
                    self._read(*order)
        if self._reader is not None:
            self._reader.close()

    def _read(self, wanted: Wanted, read: Read) -> None:
        self._current = wanted
        read(self._get)
        self._current = None
        reader: object = self._reader
        if wanted.dropped and isinstance(reader, SettlesLater):
            reader.settle(self._clock.now() + self._timeout_s)

    def _get(self, handle: Handle) -> bytes:
        if self.now() == _TIME_IS_UP:
            raise StageTimeout("nobody waits for it any more")
        if self._reader is None:
            self._reader = self._open_reader(self)
        return self._reader.get(handle, self._clock.now() + self._timeout_s)
