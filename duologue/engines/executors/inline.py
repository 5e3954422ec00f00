"""Workers that are threads of this process.

For tests, and for code that is tiny or leaves the interpreter while it computes. A thread cannot
be killed: one that hangs is abandoned. This module must not know runners.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from duologue.engines.executors.base import REPLICA_LOST, Loss, WorkerListener
from duologue.engines.messages import Died, Report, Stop, ToWorker, WorkerSpec
from duologue.engines.stage_worker import StageWorker
from duologue.engines.worker_life import make_worker, serve

MAX_WAITING_REPORTS = 256
"""A worker whose reports the loop has not taken steps no further: as with a process, whose link is
full then."""


class InlineExecutor:
    """Starts threads."""

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> InlineWorker:
        """Start a thread; ``env`` and ``interpreter`` of the spec have no effect."""
        return InlineWorker(spec, listener)

    async def close(self) -> None:
        """Workers share nothing."""


class InlineWorker:
    """The loop's end of a worker thread."""

    def __init__(self, spec: WorkerSpec, listener: WorkerListener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._pending: list[ToWorker] = []
        self._reports: deque[Report] = deque()
        self._room = threading.Event()
        """Clear: the thread waits until reports are taken."""

        self._delivery_due = False
        self._loss = Loss(REPLICA_LOST, "the worker was told to stop")
        self._lost = False
        self._abandoned = False
        self._worker: StageWorker = make_worker(spec, self._post)
        # A daemon, so that one that hangs does not keep the process from ending.
        threading.Thread(target=self._run, name=spec.name, daemon=True).start()

    def send(self, message: ToWorker) -> None:
        """Queue a message until the end of this turn of the loop."""
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(message)

    def kill(self) -> None:
        """Abandon the thread: it ends after its step, and nothing more is heard of it."""
        self._abandoned = True
        self._room.set()
        self._worker.receive((Stop(),))
        self._loss = Loss(REPLICA_LOST, "the worker was abandoned")
        self._loop.call_soon(self._lose)

    def _flush(self) -> None:
        self._worker.receive(self._pending)
        self._pending = []

    def _run(self) -> None:
        serve(self._worker, self._post)
        self._tell_loop(self._lose)

    def _post(self, report: Report) -> None:
        while len(self._reports) >= MAX_WAITING_REPORTS and not self._abandoned:
            self._room.clear()
            # Looked at again: they may have been taken before the event was cleared.
            if len(self._reports) >= MAX_WAITING_REPORTS and not self._abandoned:
                self._room.wait()
        if self._abandoned:
            return
        # One wake-up of the loop takes all reports that are posted until it comes. The flag is
        # cleared before the reports are taken, so none is left behind.
        self._reports.append(report)
        if not self._delivery_due:
            self._delivery_due = True
            self._tell_loop(self._deliver)

    def _tell_loop(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # A worker may outlive the loop, and then nobody is left to be told.
            self._abandoned = True

    def _deliver(self) -> None:
        self._delivery_due = False
        if self._abandoned:
            self._reports.clear()
        while self._reports and not self._lost:
            report = self._reports.popleft()
            match report.messages:
                case [Died(code=code, reason=reason)]:
                    self._loss = Loss(code, reason)
                case _:
                    self._listener.on_report(report)
        self._room.set()

    def _lose(self) -> None:
        self._deliver()
        if not self._lost:
            self._lost = True
            self._listener.on_lost(self._loss)
