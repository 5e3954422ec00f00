"""Long work as slices: a thread that goes on when it is let, and stops where it says it can.

A pipeline of a library is one long call. It runs in a thread of its own, and whoever owns the work
hands it the right to run, slice by slice: at any time only one of the two runs. This module must
not know what the work is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class WorkAbandonedError(BaseException):
    """Raised in the work where it paused, so that it unwinds; no library takes it for an error."""


class SlicedWork:
    """One thread for work that comes one after another, so that libraries keep their own threads.

    Concurrency:
        ``begin``, ``advance`` and ``abandon`` belong to the owner's thread, ``pause`` to the work.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._begun: Callable[[], None] | None = None
        self._running: Future[None] | None = None
        self._abandoned = False

    @property
    def is_working(self) -> bool:
        """Work was begun and has not ended."""
        return self._begun is not None or self._running is not None

    def begin(self, work: Callable[[], None]) -> None:
        """Take work; the first ``advance`` starts it."""
        assert not self.is_working, "one work at a time"
        self._begun = work

    def advance(self) -> bool:
        """Let the work go on until it pauses; says whether it has ended.

        Raises:
            BaseException: What the work raised. It has ended, and nothing of it is kept.
        """
        if self._begun is not None:
            self._running, self._begun = self._pool.submit(self._begun), None
            self._running.add_done_callback(lambda _: self._back.release())
        else:
            self._go.release()
        self._back.acquire()
        if self._running is None or not self._running.done():
            return False
        ended, self._running = self._running, None
        ended.result()
        return True

    def abandon(self) -> None:
        """Let the work unwind from where it paused; it is over when this returns."""
        self._begun = None
        if self._running is None:
            return
        self._abandoned = True
        self._go.release()
        self._back.acquire()
        self._running = None
        self._abandoned = False

    def close(self) -> None:
        """Let the thread end; no work is left."""
        self._pool.shutdown()

    def pause(self) -> None:
        """Hand the right to run back, and wait until it comes again.

        Raises:
            WorkAbandonedError: Nobody wants the work any more.
        """
        self._back.release()
        self._go.acquire()
        if self._abandoned:
            raise WorkAbandonedError
