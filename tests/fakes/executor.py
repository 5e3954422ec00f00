"""An executor without workers: a test says what a worker reports, and when it is lost."""

from __future__ import annotations

import asyncio

from duologue.core.errors import EngineError
from duologue.engines.executors.base import REPLICA_LOST, Loss, WorkerListener
from duologue.engines.messages import FromWorker, Ready, Report, ToWorker, WorkerSpec


class FakeWorker:
    """A worker as its executor has it."""

    def __init__(self, spec: WorkerSpec, listener: WorkerListener, stubborn: bool) -> None:
        self.spec = spec
        self.sent: list[ToWorker] = []
        self.killed = False
        self._listener = listener
        self._stubborn = stubborn

    def send(self, message: ToWorker) -> None:
        self.sent.append(message)

    def kill(self) -> None:
        """A stubborn worker is only lost when the test says so."""
        self.killed = True
        if not self._stubborn:
            self.lose("killed")

    def report(self, *messages: FromWorker, step_s: float = 0.0) -> None:
        """Say something."""
        self._listener.on_report(Report(list(messages), step_s))

    def warm(self) -> None:
        """Say that it is ready."""
        self.report(Ready(took_s=0.5))

    def lose(self, reason: str = "it died", code: str = REPLICA_LOST) -> None:
        """Be gone."""
        self._listener.on_lost(Loss(code, reason))


class FakeExecutor:
    """Keeps all workers it started.

    Args:
        stubborn: Workers outlive ``kill``.
        stuck: Attempts to start one hang, as many as these; each listener is kept.
    """

    def __init__(self, *, stubborn: bool = False, stuck: int = 0) -> None:
        self.workers: list[FakeWorker] = []
        self.abandoned: list[FakeWorker] = []
        self.refusal: EngineError | None = None
        self.closed = 0
        self._stubborn = stubborn
        self._stuck = stuck

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> FakeWorker:
        if self.refusal is not None:
            raise self.refusal
        worker = FakeWorker(spec, listener, self._stubborn)
        if len(self.abandoned) < self._stuck:
            self.abandoned.append(worker)
            await asyncio.Event().wait()
        self.workers.append(worker)
        return worker

    async def close(self) -> None:
        self.closed += 1
