"""Starts one worker on this machine, and waits for its end: what an actor of the cluster does.

The system kills the worker with the thread that started it: so it dies with its actor, however
that dies. This module must not know Ray.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress

import msgspec

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.engines.executors.linked import QUIET_THREADS, WORKER_MODULE
from duologue.engines.executors.ray.door import Purpose, let_in, open_door
from duologue.engines.executors.ray.messages import Birth
from duologue.engines.transport.remote_seat import WITH_SEAT, pass_seat

LET_IN_S = 15.0


class Holder:
    """The life of one worker: ``listen``, ``bear``, ``wait``, each called once and in this order.

    Args:
        let_in_s: Time in which the engine must have come.

    Concurrency:
        All three block, in threads that live as long as this process. ``kill`` may come from any
        other at any time.
    """

    def __init__(self, let_in_s: float = LET_IN_S) -> None:
        self._let_in_s = let_in_s
        self._host = ""
        self._door: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def listen(self, host: str) -> int:
        """Open a door for the engine; returns its port."""
        self._host = host
        self._door = open_door(host)
        return int(self._door.getsockname()[1])

    def bear(self, birth: Birth, secret: bytes) -> None:
        """Let the engine in, and give its connections to a new worker.

        Raises:
            EngineError: The engine did not come, or the interpreter cannot be run.
        """
        door = self._door
        assert door is not None, "it listens first"
        try:
            with door:
                lines = let_in(door, secret, SystemClock(), self._let_in_s)
        except TimeoutError as exc:
            raise EngineError(f"the engine did not come within {self._let_in_s:g} s") from exc
        link, output = lines[Purpose.LINK], lines[Purpose.OUTPUT]
        seat = None
        if birth.seat is not None:
            seat = pass_seat(msgspec.structs.replace(birth.seat, host=self._host))
        with link, output, seat or nullcontext():
            more = () if seat is None else (seat.fileno(),)
            try:
                child = subprocess.Popen(
                    [
                        birth.interpreter or sys.executable,
                        *("-u", "-P", "-m", WORKER_MODULE, str(link.fileno()), str(os.getpid())),
                        *(() if seat is None else (WITH_SEAT, str(seat.fileno()))),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output.fileno(),
                    stderr=subprocess.STDOUT,
                    pass_fds=(link.fileno(), *more),
                    start_new_session=True,
                    env={**os.environ, **QUIET_THREADS, **birth.env},
                )
            except OSError as exc:
                raise EngineError(f"the worker {birth.name} cannot be started: {exc}") from exc
        self._child = child
        _give_priority(child.pid)

    def wait(self) -> str:
        """Wait for the worker's end; returns how it ended."""
        child = self._child
        assert child is not None, "it is born first"
        status = child.wait()
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        return f"its process ended with status {status}"

    def kill(self) -> None:
        """Kill the worker, and what it has started."""
        child = self._child
        if child is not None and child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _give_priority(pid: int) -> None:
    """Let a worker be what this machine's Ray is, which started its actor nicer than itself.

    Actors come after everybody else on the machine, by 15 steps (``RAY_worker_niceness``).
    """
    with suppress(OSError):  # it has ended, or we may not: docs/stages.md says what to do
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, os.getppid()))
