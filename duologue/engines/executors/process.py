"""Workers that are processes of their own.

Each is started as a module with one end of a Unix socket pair. It may crash, be killed or keep
its interpreter busy without harm to this process. This module must not know runners.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import BinaryIO, cast

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.executors.base import WorkerListener
from duologue.engines.executors.child import Child
from duologue.engines.executors.linked import (
    QUIET_THREADS,
    STALL_S,
    WORKER_MODULE,
    LinkedWorker,
    LinkProtocol,
)
from duologue.engines.executors.priority import fewer_threads
from duologue.engines.messages import WorkerSpec
from duologue.engines.ports import WorkClass
from duologue.engines.transport import memory_file
from duologue.engines.transport.choice import BETWEEN_HOSTS, SLAB, choose_transport
from duologue.engines.transport.remote_engine import RemoteEnd, RemotePayloads
from duologue.engines.transport.remote_seat import WITH_SEAT, pass_seat
from duologue.engines.transport.slab_engine import EngineEnd, SharedSlab
from duologue.engines.transport.slab_seat import WITH_SLAB, offer_seat

THIS_MACHINE = "127.0.0.1"


class ProcessExecutor:
    """Starts child processes.

    Args:
        stall_s: A worker that has read nothing for so long, though something waits for it, is as
            good as dead, and is killed. How much waits is no reason: that is bounded for each job.
    """

    def __init__(self, stall_s: float = STALL_S) -> None:
        self.stall_s = stall_s
        self._slab = SharedSlab()
        self._remote = RemotePayloads()

    @property
    def held_bytes(self) -> int:
        """Large payloads that were not read by all who shall."""
        return self._slab.held_bytes + self._remote.held_bytes

    @property
    def fill(self) -> float:
        """How full the fullest place for them is; what finds no room goes through the socket."""
        return max(self._slab.fill, self._remote.fill)

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> LinkedWorker:
        """Start a child process.

        Raises:
            EngineError: The interpreter cannot be run.
        """
        loop = asyncio.get_running_loop()
        transport = choose_transport(
            "process", spec.transport, room_bytes=spec.slab_bytes, interpreter=spec.interpreter
        )
        end = self._enlist(spec, transport)
        try:
            seat = await self._seat(end) if isinstance(end, RemoteEnd) else None
            ours, theirs = socket.socketpair()
        except OSError as exc:
            _leave(end)
            raise EngineError(f"the worker {spec.name} cannot be started: {exc}") from exc
        except BaseException:
            _leave(end)
            raise
        worker = LinkedWorker(spec, listener, self.stall_s, end)
        with theirs, seat or nullcontext():
            try:
                if isinstance(end, EngineEnd):
                    offer_seat(ours, self._slab.memory, end.seat)
                await loop.create_unix_connection(lambda: LinkProtocol(worker), sock=ours)
                await _WorkerChild(worker).start(
                    (spec.interpreter or sys.executable, "-u", "-P", "-m", WORKER_MODULE),
                    theirs,
                    {**os.environ, **QUIET_THREADS, **_threads_of(spec), **spec.env},
                    options=_options(end, seat),
                    more_fds=(*_board_of(spec), *(() if seat is None else (seat.fileno(),))),
                )
            except OSError as exc:
                worker.close()
                _leave(end)
                raise EngineError(f"the worker {spec.name} cannot be started: {exc}") from exc
            except asyncio.CancelledError:
                worker.close()
                ours.close()
                _leave(end)
                raise
        worker.listen()
        return worker

    async def close(self) -> None:
        """What workers shared went with the last of them."""

    def _enlist(self, spec: WorkerSpec, transport: str) -> EngineEnd | RemoteEnd | None:
        if transport in BETWEEN_HOSTS:
            return self._remote.enlist(transport, spec.name, spec.slab_bytes, spec.relays)
        if transport != SLAB or not memory_file.is_available():
            return None
        try:
            return self._slab.enlist(spec.slab_bytes, spec.relays)
        except OSError as exc:
            raise EngineError(f"no shared memory for the worker {spec.name}: {exc}") from exc

    @staticmethod
    async def _seat(end: RemoteEnd) -> BinaryIO:
        """Open an end on this machine alone; returns the pipe that tells its worker."""
        await asyncio.to_thread(end.open_at, THIS_MACHINE)
        return pass_seat(msgspec.structs.replace(end.workers_seat, host=THIS_MACHINE))


def _options(end: EngineEnd | RemoteEnd | None, seat: BinaryIO | None) -> tuple[str, ...]:
    if seat is not None:
        return (WITH_SEAT, str(seat.fileno()))
    return () if end is None else (WITH_SLAB,)


def _threads_of(spec: WorkerSpec) -> Mapping[str, str]:
    return fewer_threads() if spec.work_class is WorkClass.BATCH else {}


def _board_of(spec: WorkerSpec) -> tuple[int, ...]:
    return () if spec.share is None else (spec.share.board,)


def _leave(end: EngineEnd | RemoteEnd | None) -> None:
    if end is not None:
        end.worker_died()


class _WorkerChild(Child):
    """The process of a worker. Implements ``ProcessHandle``."""

    def __init__(self, worker: LinkedWorker) -> None:
        super().__init__(worker.printed)
        self._worker = worker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._worker.take_handle(self)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._worker.output_ended()

    def process_exited(self) -> None:
        super().process_exited()
        child = cast(asyncio.SubprocessTransport, self._process)  # it is not released before
        # What the worker itself has started is of its session, whose number nobody else can have
        # while any of them lives.
        with suppress(ProcessLookupError):
            os.killpg(child.get_pid(), signal.SIGKILL)
        self._worker.exited(f"its process ended with status {child.get_returncode()}")
