"""Workers that are processes of their own.

Each is started as a module with one end of a Unix socket pair. It may crash, be killed or keep
its interpreter busy without harm to this process. This module must not know runners.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import structlog

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.executors.base import REPLICA_LOST, Loss, WorkerListener
from duologue.engines.messages import Died, Ready, Report, ToWorker, WorkerSpec
from duologue.engines.ports import WorkClass
from duologue.engines.worker_log import read_marked

log = structlog.get_logger(__name__)

QUIET_THREADS: Mapping[str, str] = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Set for every worker; the ``env`` of a stage goes before it.

Threads of native libraries sleep while they wait. Spinning starves whoever shares the cores: a
language model on two busy cores was four times slower with the default.
"""

BATCH_NICENESS = 10
_WORKER = "duologue.engines.worker"
STALL_S = 10.0
_LOOKS = 2
"""Idle looks in a row before a worker counts as stalled. The first one may only mean that this
process itself stood still, and has not offered the bytes to the link yet."""

_EXIT_S = 1.0
"""From the loss of one of link, output and process to that of all."""

_TAIL_LINES = 20
_LONGEST_LINE_BYTES = 4096


class ProcessExecutor:
    """Starts child processes.

    Args:
        stall_s: A worker that has read nothing for so long, though something waits for it, is as
            good as dead, and is killed. How much waits is no reason: that is bounded for each job.
    """

    def __init__(self, stall_s: float = STALL_S) -> None:
        self._stall_s = stall_s

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> ProcessWorker:
        """Start a child process.

        It is started by the thread of the loop, since the system kills it with that thread.

        Raises:
            EngineError: The interpreter cannot be run.
        """
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        worker = ProcessWorker(spec, listener, self._stall_s)
        with theirs:
            try:
                await loop.create_unix_connection(lambda: _Link(worker), sock=ours)
                await loop.subprocess_exec(
                    lambda: _Child(worker),
                    spec.interpreter or sys.executable,
                    *("-u", "-P", "-m", _WORKER, str(theirs.fileno()), str(os.getpid())),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    pass_fds=(theirs.fileno(),),
                    env={**os.environ, **QUIET_THREADS, **spec.env},
                )
            except OSError as exc:
                worker.close()
                raise EngineError(f"the worker {spec.name} cannot be started: {exc}") from exc
            except asyncio.CancelledError:
                worker.close()
                ours.close()
                raise
        worker.listen()
        return worker


class ProcessWorker:
    """The loop's end of a child process."""

    def __init__(self, spec: WorkerSpec, listener: WorkerListener, stall_s: float) -> None:
        self.name = spec.name
        self._spec = spec
        self._listener = listener
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._link: asyncio.Transport | None = None
        self._child: asyncio.SubprocessTransport | None = None
        self._pending: list[ToWorker] = []
        self._last_words: Died | None = None
        self._killed_for = ""
        self._ready = False
        # Loss is reported when all three are gone: link and output may hold the last words.
        self._link_open = False
        self._exited = False
        self._output_open = True
        self._reported = False
        # Timers of their own rather than places in the wheel: no more than one of each is armed
        # for a worker, for seconds, and most of the time none.
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._written_bytes = 0
        self.output_tail: deque[str] = deque(maxlen=_TAIL_LINES)

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._child.get_pid() if self._child is not None else None

    def send(self, message: ToWorker) -> None:
        """Queue a message; all that were queued in one turn of the loop are one write."""
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(message)

    def kill(self) -> None:
        """Kill the process."""
        self._kill("it was killed by the engine")

    def close(self) -> None:
        """Close the link; a child at its other end exits."""
        if self._link is not None:
            self._link.abort()

    def link_made(self, link: asyncio.Transport) -> None:
        """The link is up; the child is told what to be, and not heard before ``listen``."""
        self._link = link
        self._link_open = True
        link.pause_reading()
        link.write(framing.encode(self._spec))

    def listen(self) -> None:
        """Hear the child: whoever started it has this object from now on."""
        if self._link is not None and self._link_open:
            self._link.resume_reading()

    def child_made(self, child: asyncio.SubprocessTransport) -> None:
        """The child runs."""
        self._child = child
        if self._spec.work_class is WorkClass.BATCH:
            os.setpriority(os.PRIO_PROCESS, child.get_pid(), BATCH_NICENESS)

    def received(self, report: Report) -> None:
        """The child said something."""
        match report.messages:
            case [Died() as last_words]:
                self._last_words = last_words
                return
            case [Ready(), *_]:
                self._ready = True
            case _:
                pass
        self._listener.on_report(report)

    def printed(self, line: str) -> None:
        """The child, or a library in it, wrote a line to stdout or stderr."""
        said = read_marked(line)
        if said is not None:
            what, values = said
            log.info("worker_says", worker=self.name, what=what, **values)
            return
        self.output_tail.append(line)
        log.debug("worker_output", worker=self.name, **{"pii.line": line})

    def link_lost(self) -> None:
        """The link is down: the child is dead, or must die."""
        self._link_open = False
        if self._watch is not None:
            self._watch.cancel()
        if not self._exited:
            # Most likely it is dead. To signal it now could take the news of how it died away
            # from whoever waits for that.
            self._timer = self._loop.call_later(_EXIT_S, self._signal)
        self._report_loss_if_gone()

    def output_ended(self) -> None:
        """Nothing more will be printed."""
        self._output_open = False
        self._report_loss_if_gone()

    def child_exited(self) -> None:
        """The child is dead; a process that it started may hold on to its output."""
        self._exited = True
        self._cancel_timer()
        self._timer = self._loop.call_later(_EXIT_S, self.output_ended)
        self._report_loss_if_gone()

    def _flush(self) -> None:
        messages, self._pending = self._pending, []
        if self._link is None or not self._link_open:
            return
        frames = framing.encode_messages(messages)
        self._written_bytes += len(frames)
        self._link.write(frames)
        waiting_bytes = self._link.get_write_buffer_size()
        if waiting_bytes and self._watch is None:
            self._watch_reading(self._written_bytes - waiting_bytes, idle_looks=0)

    def _watch_reading(self, read_bytes: int, idle_looks: int) -> None:
        look_s = self._stall_s / _LOOKS
        self._watch = self._loop.call_later(look_s, self._look, read_bytes, idle_looks)

    def _look(self, read_before: int, idle_looks: int) -> None:
        self._watch = None
        if self._link is None or not self._link_open:
            return
        waiting_bytes = self._link.get_write_buffer_size()
        read_bytes = self._written_bytes - waiting_bytes
        idle_looks = idle_looks + 1 if read_bytes == read_before else 0
        if idle_looks == _LOOKS:
            self._kill(
                f"it does not read: {waiting_bytes} bytes have waited for {self._stall_s:g} s"
            )
        elif waiting_bytes:
            self._watch_reading(read_bytes, idle_looks)

    def _kill(self, why: str) -> None:
        if not self._killed_for:
            self._killed_for = why
            self._signal()

    def _signal(self) -> None:
        if self._child is not None and not self._exited:
            with suppress(ProcessLookupError):  # it is dead, and the news is on its way
                self._child.kill()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _report_loss_if_gone(self) -> None:
        if self._link_open or self._output_open or not self._exited or self._reported:
            return
        self._reported = True
        child = cast(asyncio.SubprocessTransport, self._child)
        self._cancel_timer()
        status = child.get_returncode()
        child.close()
        if self._last_words is not None:
            self._listener.on_lost(Loss(self._last_words.code, self._last_words.reason))
            return
        reason = self._killed_for or f"its process ended with status {status}"
        if not self._ready and self.output_tail:
            # Nobody has said anything to it yet, so this quotes nobody.
            reason = f"{reason}: {self.output_tail[-1]}"
        self._listener.on_lost(Loss(REPLICA_LOST, reason))


class _Link(asyncio.Protocol):
    """The socket to a worker."""

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self._reader = framing.FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._worker.link_made(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        for body in self._reader.feed(data):
            self._worker.received(framing.decode_report(body))

    def connection_lost(self, exc: Exception | None) -> None:
        self._worker.link_lost()


class _Child(asyncio.SubprocessProtocol):
    """The process of a worker, and what it prints."""

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._worker.child_made(cast(asyncio.SubprocessTransport, transport))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _LONGEST_LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._worker.printed(line[:_LONGEST_LINE_BYTES].decode(errors="replace"))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._worker.output_ended()

    def process_exited(self) -> None:
        self._worker.child_exited()
