"""The loop's end of a worker that is a process of its own, on this machine or on another.

What it says comes on a link, what it prints on an output, and that it is dead from whoever holds
it. This module must not know runners, nor how a process is started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

import structlog

from duologue.engines import framing
from duologue.engines.executors.base import REPLICA_LOST, Loss, WorkerListener
from duologue.engines.messages import Died, Ready, Report, ToWorker, WorkerSpec
from duologue.engines.worker_log import read_marked

log = structlog.get_logger(__name__)

QUIET_THREADS: Mapping[str, str] = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Set for every worker; the ``env`` of a stage goes before it.

Threads of native libraries sleep while they wait. Spinning starves whoever shares the cores: a
language model on two busy cores was four times slower with the default.
"""

WORKER_MODULE = "duologue.engines.worker"
STALL_S = 10.0
_LOOKS = 2
"""Idle looks in a row before a worker counts as stalled. The first one may only mean that this
process itself stood still, and has not offered the bytes to the link yet."""

_EXIT_S = 1.0
"""From the loss of one of link, output and process to that of all."""

_TAIL_LINES = 20
_LONGEST_LINE_BYTES = 4096


class ProcessHandle(Protocol):
    """The process of a worker, as whoever started it has it."""

    def kill(self) -> None:
        """Be rid of it. ``exited`` of the worker follows, whatever became of the process."""
        ...

    def release(self) -> None:
        """It is dead, and all that it said was heard."""
        ...


class Beside(Protocol):
    """Takes large payloads past the link, as its other end does.

    Args:
        given_bytes: All that the worker was ever given; ``unread_bytes``: not read of that.
    """

    given_bytes: int
    unread_bytes: int

    def link_made(self, write: Callable[[bytes], None], hear: Callable[[Report], None]) -> None:
        """From now on frames can be written, and reports can be told that came late."""
        ...

    def encode(self, messages: Sequence[ToWorker]) -> bytes:
        """Return the frames of messages."""
        ...

    def take(self, body: bytes) -> Report | None:
        """Take a frame that is no report, and return what it leads to."""
        ...

    def hold_back(self, report: Report) -> Report | None:
        """Return what of a report can be heard now; the rest is told later."""
        ...

    def worker_died(self) -> None:
        """The worker reads and writes nothing any more."""
        ...


class LinkedWorker:
    """A worker behind a link.

    Args:
        stall_s: One that has read nothing for so long, though something waits for it, is killed.
        beside: Has a way past the link; ``None``: everything goes through it.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        listener: WorkerListener,
        stall_s: float,
        beside: Beside | None = None,
    ) -> None:
        self.name = spec.name
        self._spec = spec
        self._listener = listener
        self._stall_s = stall_s
        self._beside = beside
        self._encode = framing.encode_messages if beside is None else beside.encode
        self._loop = asyncio.get_running_loop()
        self._link: asyncio.Transport | None = None
        self._handle: ProcessHandle | None = None
        self._pending: list[ToWorker] = []
        self._last_words: Died | None = None
        self._killed_for = ""
        self._ready = False
        # Loss is reported when all three are gone: link and output may hold the last words.
        self._link_open = False
        self._output_open = True
        self._how_it_ended = ""
        self._reported = False
        # Timers of their own rather than places in the wheel: no more than one of each is armed
        # for a worker, for seconds, and most of the time none.
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._written_bytes = 0
        self.output_tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def send(self, message: ToWorker) -> None:
        """Queue a message; all that were queued in one turn of the loop are one write."""
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(message)

    def kill(self) -> None:
        """Kill the process."""
        self._kill("it was killed by the engine")

    def close(self) -> None:
        """Close the link; a process at its other end exits."""
        if self._link is not None:
            self._link.abort()

    def link_made(self, link: asyncio.Transport) -> None:
        """The link is up; the worker is told what to be, and not heard before ``listen``."""
        self._link = link
        self._link_open = True
        link.pause_reading()
        link.write(framing.encode(self._spec))
        if self._beside is not None:
            self._beside.link_made(self._write_beside, self._listener.on_report)

    def take_handle(self, handle: ProcessHandle) -> None:
        """The process runs."""
        self._handle = handle

    def listen(self) -> None:
        """Hear the worker: whoever started it has this object from now on."""
        if self._link is not None and self._link_open:
            self._link.resume_reading()

    def received(self, report: Report) -> None:
        """The worker said something."""
        match report.messages:
            case [Died() as last_words]:
                self._last_words = last_words
                return
            case [Ready(), *_]:
                self._ready = True
            case _:
                pass
        now = report if self._beside is None else self._beside.hold_back(report)
        if now is not None:
            self._listener.on_report(now)

    def received_apart(self, body: bytes) -> None:
        """The worker said something about what goes past the link."""
        report = None if self._beside is None else self._beside.take(body)
        if report is not None:
            self._listener.on_report(report)

    def printed(self, line: str) -> None:
        """The worker, or a library in it, wrote a line to stdout or stderr."""
        said = read_marked(line)
        if said is not None:
            what, values = said
            log.info("worker_says", worker=self.name, what=what, **values)
            return
        self.output_tail.append(line)
        log.debug("worker_output", worker=self.name, **{"pii.line": line})

    def link_lost(self) -> None:
        """The link is down: the process is dead, or must die."""
        self._link_open = False
        if self._watch is not None:
            self._watch.cancel()
        if not self._how_it_ended and self._handle is not None:
            # Most likely it is dead. To signal it now could take the news of how it died away
            # from whoever waits for that.
            self._set_timer(self._handle.kill)
        self._report_loss_if_gone()

    def output_ended(self) -> None:
        """Nothing more will be printed."""
        self._output_open = False
        self._report_loss_if_gone()

    def exited(self, how: str) -> None:
        """The process is dead; one that it started may hold on to its output, or to the link.

        Args:
            how: As ``its process ended with status 3``.
        """
        if not self._how_it_ended:
            self._how_it_ended = how
            self._set_timer(self._hear_no_more)
            self._report_loss_if_gone()

    def _flush(self) -> None:
        messages, self._pending = self._pending, []
        link = self._link
        if link is None or not self._link_open:
            return
        frames = self._encode(messages)
        self._written_bytes += len(frames)
        link.write(frames)
        if self._watch is None and (waiting_bytes := self._waiting_bytes(link)):
            self._watch_reading(self._given_bytes() - waiting_bytes, idle_looks=0)

    def _write_beside(self, frames: bytes) -> None:
        if self._link is not None and self._link_open:
            self._written_bytes += len(frames)
            self._link.write(frames)

    def _waiting_bytes(self, link: asyncio.Transport) -> int:
        beside = 0 if self._beside is None else self._beside.unread_bytes
        return link.get_write_buffer_size() + beside

    def _given_bytes(self) -> int:
        return self._written_bytes + (0 if self._beside is None else self._beside.given_bytes)

    def _watch_reading(self, read_bytes: int, idle_looks: int) -> None:
        look_s = self._stall_s / _LOOKS
        self._watch = self._loop.call_later(look_s, self._look, read_bytes, idle_looks)

    def _look(self, read_before: int, idle_looks: int) -> None:
        self._watch = None
        if self._link is None or not self._link_open:
            return
        waiting_bytes = self._waiting_bytes(self._link)
        read_bytes = self._given_bytes() - waiting_bytes
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
            if self._handle is not None and not self._how_it_ended:
                self._handle.kill()

    def _set_timer(self, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_EXIT_S, callback)

    def _hear_no_more(self) -> None:
        self.close()
        self.output_ended()

    def _report_loss_if_gone(self) -> None:
        gone = self._how_it_ended and not self._link_open and not self._output_open
        if not gone or self._reported:
            return
        self._reported = True
        self._let_go()
        if self._last_words is not None:
            self._listener.on_lost(Loss(self._last_words.code, self._last_words.reason))
            return
        reason = self._killed_for or self._how_it_ended
        if not self._ready and self.output_tail:
            # Nobody has said anything to it yet, so this quotes nobody.
            reason = f"{reason}: {self.output_tail[-1]}"
        self._listener.on_lost(Loss(REPLICA_LOST, reason))

    def _let_go(self) -> None:
        """Refer to nobody who refers to this worker: what is lost waits for no collector."""
        if self._timer is not None:
            self._timer.cancel()
        if self._handle is not None:
            self._handle.release()
        if self._beside is not None:
            self._beside.worker_died()
        self._timer = self._watch = self._handle = self._beside = self._link = None
        self._encode = framing.encode_messages


class LinkProtocol(asyncio.Protocol):
    """The link to a worker."""

    def __init__(self, worker: LinkedWorker) -> None:
        self._worker = worker
        self._reader = framing.FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The link is up."""
        self._worker.link_made(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        """Pass the reports on."""
        for body in self._reader.feed(data):
            if body[0] == framing.APART:
                self._worker.received_apart(body)
            else:
                self._worker.received(framing.decode_report(body))

    def connection_lost(self, exc: Exception | None) -> None:
        """The link is down."""
        self._worker.link_lost()


class Lines:
    """Cuts what a process prints into lines.

    Args:
        hear: Takes each; one that never ends comes in pieces.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what was printed."""
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _LONGEST_LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._hear(line[:_LONGEST_LINE_BYTES].decode(errors="replace"))
