"""What a worker does from birth to death, and the process that holds one.

``python -m duologue.engines.worker FD PARENT`` talks frames on an inherited socket. This module
must not know pools or requests.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, cast

import msgspec

from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError, DuologueError, EngineError
from duologue.engines import framing
from duologue.engines.messages import Died, Report, WorkerSpec
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.schedulers import SCHEDULERS
from duologue.engines.stage_worker import StageWorker
from duologue.engines.worker_log import MarkedLines
from duologue.telemetry.logging import configure_logging

WORKER_CRASHED = "worker_crashed"

_READ_BYTES = 256 * 1024
_PR_SET_PDEATHSIG = 1


def make_worker(spec: WorkerSpec, post: Callable[[Report], None]) -> StageWorker:
    """Make the worker that ``spec`` describes; its runner is found and loaded when it runs."""
    return StageWorker(
        load=lambda wake: RunnerRegistry.installed().build(spec.runner, spec.settings, wake),
        schedule=SCHEDULERS[spec.scheduler],
        post=post,
        clock=SystemClock(),
    )


def serve(worker: StageWorker, post: Callable[[Report], None]) -> None:
    """Run a worker to its end; if it dies, its last words say of what."""
    try:
        worker.run()
    except ConfigError as exc:
        post(Report([Died(exc.code, exc.message)]))  # the user's typing error: where is no matter
    except DuologueError as exc:
        traceback.print_exc()
        post(Report([Died(exc.code, exc.message)]))
    # One of the three agreed places for a broad except: a bug in a runner ends this worker and
    # nothing else, and the pool starts another.
    except Exception as exc:  # noqa: BLE001
        traceback.print_exc()
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        post(Report([Died(WORKER_CRASHED, f"{type(exc).__name__} at {where}")]))


def main() -> None:
    """Be a worker until the engine says stop, or is gone."""
    # Ctrl-C and a service manager's stop reach all processes, but the engine first lets calls end;
    # when to leave is for it to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _die_with_parent(int(sys.argv[2]))
    configure_logging(log_format="json", stream=cast(TextIO, MarkedLines(sys.stdout)))
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    reader = framing.FrameReader()
    bodies: list[bytes] = []
    while not bodies:
        bodies = reader.feed(_receive(link))

    def post(report: Report) -> None:
        try:
            link.sendall(framing.encode(report))
        except OSError:
            os._exit(1)

    def read_on(waiting: list[bytes]) -> None:
        try:
            while True:
                for body in waiting:
                    worker.receive(framing.decode_messages(body))
                waiting = reader.feed(_receive(link))
        except (msgspec.DecodeError, EngineError):
            traceback.print_exc()  # the two ends speak different versions: nothing can be mended
            os._exit(1)

    spec = framing.decode_spec(bodies[0])
    threading.current_thread().name = spec.name
    worker = make_worker(spec, post)
    threading.Thread(target=read_on, args=(bodies[1:],), name="engine link", daemon=True).start()
    serve(worker, post)
    # Libraries may have left threads behind that never end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _receive(link: socket.socket) -> bytes:
    try:
        data = link.recv(_READ_BYTES)
    except OSError:
        data = b""
    if not data:
        os._exit(0)  # the engine is gone, and with it everybody who wanted an answer
    return data


def _die_with_parent(parent_pid: int) -> None:
    """Be killed when the engine dies, even while a native call holds the interpreter."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before we could ask
        os._exit(0)


if __name__ == "__main__":
    main()
