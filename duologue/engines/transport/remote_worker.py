"""A worker's end of a link whose large payloads lie with whoever wrote them, on any host.

They are read in a thread beside the one that reads the link, so a cancel overtakes them. This
module must not know jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import cast

from duologue.core.clock import Clock
from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Apart,
    Append,
    Cancel,
    Freed,
    JobEnded,
    OfWorker,
    Open,
    ReaderGone,
    Report,
    ToWorker,
)
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import whole
from duologue.engines.transport.fetcher import Fetcher, Get
from duologue.engines.transport.in_order import Awaited, InOrder
from duologue.engines.transport.port import CountsReads
from duologue.engines.transport.remote_seat import READ_TIMEOUT_S, RemoteSeat
from duologue.engines.transport.report_encoder import ReportEncoder

Receive = Callable[[Sequence[ToWorker]], None]


class RemoteWorkerEnd:
    """Encodes reports, and reads what the engine says, beside its messages and in them.

    Args:
        receive: Takes messages for the worker; called in one thread at a time.
        write: Takes frames for the engine, from any thread.

    Concurrency:
        ``encode`` belongs to the thread that works, ``take`` and ``deliver`` to the one that reads
        the link.

    Raises:
        EngineError: The seat's address cannot be listened at, or a package is missing.
    """

    def __init__(
        self,
        seat: RemoteSeat,
        receive: Receive,
        write: Callable[[bytes], None],
        timeout_s: float = READ_TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        self._store = seat.open_store()
        self._receive = receive
        self._write = write
        self._fetcher = Fetcher("payload reader", seat.open_reader, timeout_s, clock)
        self._mine = threading.Lock()
        self._in_order: InOrder[ToWorker] = InOrder()
        self.encode = ReportEncoder(self._store.put).encode

    def take(self, body: bytes) -> None:
        """Take what came apart from the messages; the worker receives it once it was read."""
        message = framing.decode_beside(body)
        if isinstance(message, ReaderGone):
            if isinstance(self._store, CountsReads):
                self._store.reader_died(message.reader)
            return
        if isinstance(message, Freed):
            for handle in message.handles:
                self._store.free(handle)
            return
        without = cast(Open | Append, message.message)
        with self._mine:
            awaited = self._in_order.await_payload(without.job, without)
        self._fetcher.fetch(awaited, lambda get: self._fetch(awaited, message, get))

    def deliver(self, messages: Sequence[ToWorker]) -> None:
        """Hand messages on; those of a job behind its payload that is being read wait for it."""
        with self._mine:
            if not self._in_order.is_idle:
                messages = [each for message in messages for each in self._pass_on(message)]
            self._receive(messages)

    def close(self) -> None:
        """Read and answer no more."""
        self._fetcher.close()
        self._store.close()

    def _pass_on(self, message: ToWorker) -> list[ToWorker]:
        if isinstance(message, OfWorker):
            return [message]
        if isinstance(message, Cancel):
            # One that was not opened must be, to be ended and so to acknowledge it.
            waited = self._in_order.drop(message.job)
            return [*(each for each in waited if isinstance(each, Open)), message]
        return self._in_order.pass_on(message.job, message)

    def _fetch(self, awaited: Awaited[ToWorker], message: Apart, get: Get) -> None:
        found: list[ToWorker]
        freed = framing.encode_apart(Freed(tuple(part.handle for part in message.parts)))
        try:
            found = [cast(Open | Append, whole(message, get))]
        except EngineError as exc:
            found = [Cancel(awaited.job)]
            ended = JobEnded(awaited.job, Outcome.FAILED, exc.code, exc.message)
            if not awaited.dropped:
                freed += framing.encode(Report([ended]))
        with self._mine:
            ready = self._in_order.came(awaited, found)
            if ready:
                self._receive(ready)
        self._write(freed)
