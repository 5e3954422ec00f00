"""The process that holds a worker.

``python -m duologue.engines.worker FD PARENT`` talks frames on an inherited socket; with ``slab``
behind it, the first word on the socket is where large payloads lie; with ``seat FD``, a pipe says
how those of other hosts are read. This module must not know pools or requests.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from typing import TextIO, cast

import msgspec

from duologue.core.errors import EngineError
from duologue.core.parent import die_with_parent
from duologue.engines import framing
from duologue.engines.executors.priority import yield_cores
from duologue.engines.messages import Died, Ready, Report
from duologue.engines.ports import WorkClass
from duologue.engines.transport.remote_seat import WITH_SEAT, inherit_seat
from duologue.engines.transport.remote_worker import Receive, RemoteWorkerEnd
from duologue.engines.transport.slab_seat import WITH_SLAB, take_seat
from duologue.engines.transport.slab_worker import WorkerEnd
from duologue.engines.worker_life import make_worker, serve
from duologue.engines.worker_log import MarkedLines
from duologue.telemetry.logging import configure_logging

_READ_BYTES = 256 * 1024


def main() -> None:
    """Be a worker until the engine says stop, or is gone."""
    # Ctrl-C and a service manager's stop reach all processes, but the engine first lets calls end;
    # when to leave is for it to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with_parent(int(sys.argv[2]))
    configure_logging(log_format="json", stream=cast(TextIO, MarkedLines(sys.stdout)))
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    slab = _slab(link) if sys.argv[3:] == [WITH_SLAB] else None
    encode = framing.encode if slab is None else slab.encode
    remote: RemoteWorkerEnd | None = None
    writing = threading.Lock()
    reader = framing.FrameReader()
    bodies: list[bytes] = []
    while not bodies:
        bodies = reader.feed(_receive(link))

    def write(frames: bytes) -> None:
        try:
            with writing:
                link.sendall(frames)
        except OSError:
            os._exit(0)  # as where it is read from: the engine is gone

    def post(report: Report) -> None:
        is_ready = any(isinstance(each, Ready) for each in report.messages)
        if is_ready and spec.work_class is WorkClass.BATCH:
            yield_cores()  # not before: on a machine that is full it would load for minutes
        write(encode(report))

    def read_on(waiting: list[bytes]) -> None:
        try:
            while True:
                for body in waiting:
                    is_apart = body[0] == framing.APART
                    if is_apart and remote is not None:
                        remote.take(body)
                    elif is_apart and slab is not None:
                        messages, answer = slab.take(body)
                        receive(messages)
                        write(answer)
                    else:
                        receive(framing.decode_messages(body))
                waiting = reader.feed(_receive(link))
        except (msgspec.DecodeError, EngineError):
            traceback.print_exc()  # the two ends speak different versions: nothing can be mended
            os._exit(1)

    spec = framing.decode_spec(bodies[0])
    threading.current_thread().name = spec.name
    worker = make_worker(spec, post)
    receive: Receive = worker.receive
    if sys.argv[3:4] == [WITH_SEAT]:
        seat = inherit_seat(int(sys.argv[4]))
        try:
            remote = RemoteWorkerEnd(seat, worker.receive, write)
        except EngineError as exc:
            write(framing.encode(Report([Died(exc.code, exc.message)])))
            os._exit(1)
        encode, receive = remote.encode, remote.deliver
    threading.Thread(target=read_on, args=(bodies[1:],), name="engine link", daemon=True).start()
    serve(worker, post)
    # Libraries may have left threads behind that never end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _slab(link: socket.socket) -> WorkerEnd | None:
    try:
        seat = take_seat(link)
    except EOFError:
        os._exit(0)
    return None if seat is None else WorkerEnd(*seat)


def _receive(link: socket.socket) -> bytes:
    try:
        data = link.recv(_READ_BYTES)
    except OSError:
        data = b""
    if not data:
        os._exit(0)  # the engine is gone, and with it everybody who wanted an answer
    return data


if __name__ == "__main__":
    main()
