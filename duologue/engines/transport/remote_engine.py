"""The engine's end of links whose large payloads lie with whoever wrote them, on any host.

They are read in a thread, which the loop does not wait for; what a job says behind one that is
being read waits for it. What one worker wrote and another is to read goes straight between the two.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import msgspec

from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Apart,
    Cancel,
    Freed,
    FromWorker,
    JobOutput,
    JobReport,
    ReaderGone,
    Report,
    ToWorker,
)
from duologue.engines.transport.apart import whole
from duologue.engines.transport.beside_link import BesideLink
from duologue.engines.transport.fetcher import Fetcher, Get
from duologue.engines.transport.in_order import Awaited, InOrder
from duologue.engines.transport.port import Store
from duologue.engines.transport.remote_seat import READ_TIMEOUT_S, RemoteSeat

_LIFE = 1 << 32
"""Generations that an end may hand out in its life."""

_SECRET_BYTES = 32


class RemotePayloads:
    """The ends of an executor's workers; they share a secret, so each may read of all.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, timeout_s: float = READ_TIMEOUT_S, clock: Clock | None = None) -> None:
        self.ends: set[RemoteEnd] = set()
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._lives = 0

    @property
    def held_bytes(self) -> int:
        """What was put by the engine or its workers, and not read by all who shall."""
        return sum(end.held_bytes for end in self.ends)

    @property
    def fill(self) -> float:
        """How full the fullest end is, in either direction."""
        return max((end.fill for end in self.ends), default=0.0)

    def enlist(self, kind: str, name: str, room_bytes: int, relays: bool) -> RemoteEnd:
        """Make the end for one worker, which must be opened.

        Args:
            kind: ``zeromq`` or ``nixl``.
            name: Of the worker.
            relays: What it says goes on to another worker, unread.
        """
        end = RemoteEnd(
            self, self._seat(kind, name, room_bytes), relays, self._timeout_s, self._clock
        )
        end.workers_seat = self._seat(kind, name, room_bytes)
        self.ends.add(end)
        return end

    def tell_gone(self, dead: RemoteEnd) -> None:
        """A worker reads nothing any more: let those know from whom it may have read."""
        for end in self.ends - {dead}:
            end.hear_of(dead.workers_seat.reader)

    def _seat(self, kind: str, name: str, room_bytes: int) -> RemoteSeat:
        self._lives += 1
        return RemoteSeat(
            kind=kind,
            host="",
            secret=self._secret,
            name=f"{name} {secrets.token_hex(8)}",
            max_bytes=room_bytes,
            first_generation=self._lives * _LIFE,
        )


class RemoteEnd(BesideLink):
    """The end of one worker's link.

    Concurrency:
        Belongs to the event loop, but for ``open_at``.
    """

    workers_seat: RemoteSeat
    """The worker's own; it is yet to be told its host."""

    def __init__(
        self,
        payloads: RemotePayloads,
        seat: RemoteSeat,
        relays: bool,
        timeout_s: float,
        clock: Clock,
    ) -> None:
        super().__init__(seat.max_bytes, relays)
        self._payloads = payloads
        self._seat = seat
        self._fetcher = Fetcher(f"{seat.kind} reader", seat.open_reader, timeout_s, clock)
        self._in_order: InOrder[FromWorker] = InOrder()

    def open_at(self, host: str) -> None:
        """Be found at an address of this machine. May wait for the system a little.

        Raises:
            EngineError: It cannot be, or a package is missing.
        """
        store = self._store = msgspec.structs.replace(self._seat, host=host).open_store()
        if self._dead:  # whoever started the worker has given up meanwhile
            store.close()

    def encode(self, messages: Sequence[ToWorker]) -> bytes:
        """As of any end; what cancelled jobs have made is not read any more."""
        if not self._in_order.is_idle:
            for message in messages:
                if isinstance(message, Cancel):
                    self._read_no_more(message.job)
        return super().encode(messages)

    def take(self, body: bytes) -> Report | None:
        """Take what came apart from the reports; it is heard once it was read."""
        message = framing.decode_apart(body)
        if isinstance(message, Freed):
            self._read_freed(message)
            return None
        if self._relays:
            return Report([cast(JobOutput, whole(message, self._lend))])
        job = message.message.job
        awaited = self._in_order.await_payload(job, cast(FromWorker, message.message))
        self._fetcher.fetch(awaited, lambda get: self._fetch(awaited, message, get))
        return None

    def hold_back(self, report: Report) -> Report | None:
        """Keep what jobs say behind a payload that is being read."""
        if self._in_order.is_idle:
            return report
        now: list[FromWorker] = []
        for message in report.messages:
            if isinstance(message, JobReport):
                now += self._in_order.pass_on(message.job, message)
            else:
                now.append(message)
        return Report(now, report.step_s) if now or report.step_s else None

    def hear_of(self, reader: str) -> None:
        """A reader is dead, to which this worker's payloads may have been lent."""
        if self._relays:
            self._write(framing.encode_apart(ReaderGone(reader)))

    def _read_no_more(self, job: str) -> None:
        # Its end may wait behind a payload, and is what the job's place is given back for.
        dropped = self._in_order.drop(job)
        kept: list[FromWorker] = [each for each in dropped if not isinstance(each, JobOutput)]
        if kept:
            self._loop.call_soon(lambda: self._hear(Report(kept)))

    def _fetch(self, awaited: Awaited[FromWorker], message: Apart, get: Get) -> None:
        found: JobOutput | EngineError
        try:
            found = cast(JobOutput, whole(message, get))
        except EngineError as exc:
            found = exc
        with suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(self._fetched, awaited, message, found)

    def _fetched(
        self, awaited: Awaited[FromWorker], message: Apart, found: JobOutput | EngineError
    ) -> None:
        self._tell_freed(*(part.handle for part in message.parts))
        if awaited.dropped:
            return
        if isinstance(found, EngineError):
            told = self._fail(awaited.job, found.code, found.message).messages
        else:
            told = [found]
        if ready := self._in_order.came(awaited, told):
            self._hear(Report(ready))

    def _stop(self) -> None:
        self._payloads.tell_gone(self)
        self._in_order.drop_all()
        self._fetcher.close()
        store, self._store = self._store, None
        if store is not None:
            # It waits for the thread that answers.
            self._loop.run_in_executor(None, _close, store)

    def _let_go(self) -> None:
        self._payloads.ends.discard(self)


def _close(store: Store) -> None:
    store.close()
