"""The servers that benchmarks start, each as a process of its own, and how they are reached."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from c_programs import compiled
from loadgen import Target
from priority import bring_along, go_first
from process_tree import pids

from servers.ours import (
    DUPLEX_ECHO_SCRIPT,
    DUPLEX_PATH,
    ECHO_SCRIPT,
    REALTIME_PATH,
    serve_command,
)
from servers.pipecat_env import pipecat_python

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parent / "assets"
START_LIMIT_S = 60.0
STOP_LIMIT_S = 5.0
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Server:
    """A server program: how to start it and how to speak to it."""

    name: str
    command: Callable[[int, int], Sequence[str]]
    """From (port, seconds to live) to the words of the command line."""

    target: Target = field(default_factory=Target)
    ready_path: str | None = None
    """Answers 200 when the server is ready; None: it is ready when the port is open."""

    metrics_path: str | None = None
    connect_gap_us: int = 500
    settle_ms: int = 0
    """Rest between the last connection and the first append."""

    only_sessions: int | None = None
    """Measured with this number of sessions only; None: with any."""


@dataclass(frozen=True)
class Running:
    """A server process that is ready."""

    server: Server
    pid: int
    port: int

    @property
    def url(self) -> str:
        """Where a call is opened."""
        return f"ws://127.0.0.1:{self.port}{self.server.target.path}"

    def get(self, path: str) -> str:
        """The body of an HTTP GET on the server."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode())


def bare_echo() -> Server:
    return Server("bare echo", lambda port, ttl_s: _python("bare_echo.py", port, ttl_s))


def floor_echo() -> Server:
    program = str(compiled(HERE / "floor_echo.c"))
    return Server(
        "C floor",
        lambda port, ttl_s: [program, "--port", str(port), "--ttl", str(ttl_s)],
        target=Target(raw=True),
    )


def pipecat_echo() -> Server:
    python = str(pipecat_python())
    return Server(
        "pipecat",
        lambda port, ttl_s: [
            *[python, str(HERE / "pipecat_echo.py")],
            *["--port", str(port), "--ttl", str(ttl_s)],
        ],
        connect_gap_us=20_000,
        settle_ms=1500,
        only_sessions=30,  # with more than about 40 it falls behind real time on one core
    )


def bare_call(answer_s: float) -> Server:
    return Server(
        "bare loop",
        lambda port, ttl_s: [
            *_python("bare_call.py", port, ttl_s),
            *["--answer-s", str(answer_s)],
        ],
        target=Target(path=REALTIME_PATH),
    )


def duologue(name: str = "duologue", config: Path | None = None, *, duplex: bool = False) -> Server:
    """Duologue itself, with its defaults (the embedded models) or with a configuration.

    Args:
        duplex: Spoken to in the duplex dialect, each event acknowledged.
    """
    target = Target(path=REALTIME_PATH, script=ECHO_SCRIPT)
    if duplex:
        target = Target(path=DUPLEX_PATH, script=DUPLEX_ECHO_SCRIPT, ack=True)
    return Server(
        name,
        lambda port, _ttl_s: serve_command(port, config),
        target=target,
        ready_path="/ready",
        metrics_path="/metrics",
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    server: Server, *, cpu: int | None = None, ttl_s: int = 120, urgent: bool = False
) -> Iterator[Running]:
    """Start a server, wait until it is ready, stop it at the end.

    It also stops when this process dies.

    Args:
        cpu: The core that the server and its children may use; None for all.
        urgent: Run it ahead of the machine's other work (see `priority.py`).

    Raises:
        RuntimeError: It ended or was not ready in time; with the end of its output.
    """
    port = free_port()

    def settle_in() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        if urgent:
            go_first()

    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            server.command(port, ttl_s),
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=settle_in,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        try:
            deadline = time.monotonic() + START_LIMIT_S
            while not _is_ready(server, port):
                ended = process.poll() is not None
                if ended or time.monotonic() > deadline:
                    output.seek(0)
                    state = "ended" if ended else f"was not ready within {START_LIMIT_S:.0f} s"
                    raise RuntimeError(f"{server.name} {state}: {output.read()[-2000:]}")
                time.sleep(0.1)
            if urgent:
                bring_along(pids(process.pid))
            yield Running(server, process.pid, port)
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _python(script: str, port: int, ttl_s: int) -> list[str]:
    return [sys.executable, str(HERE / script), "--port", str(port), "--ttl", str(ttl_s)]


def _is_ready(server: Server, port: int) -> bool:
    if server.ready_path is None:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0
    try:
        url = f"http://127.0.0.1:{port}{server.ready_path}"
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
