"""A Ray cluster of two nodes on this machine, on addresses of its loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from duologue.engines.executors.linked import WORKER_MODULE
from tests.fakes.marked import Marked

HAS_RAY = find_spec("ray") is not None
HERE, THERE = "127.0.0.2", "127.0.0.3"
"""The node of the head, to which the engines of tests belong, and the other one."""

RAY = str(Path(sys.executable).with_name("ray"))
ROOT = Path(__file__).parents[2]
BOUNDS = ("--object-store-memory=80000000", "--disable-usage-stats")
PATIENCE = {"RAY_raylet_start_wait_time_s": "120"}
"""With a machine that does much else at the same time."""

if os.geteuid() != 0:
    # Others may not set a worker's priority back (docs/stages.md).
    PATIENCE["RAY_worker_niceness"] = "0"

_STARTED = "Ray runtime started"


def free_address() -> str:
    """Where a head can be."""
    with socket.create_server((HERE, 0)) as free:
        return f"{HERE}:{free.getsockname()[1]}"


@cache
def address() -> str:
    """Where the head is, or will be, of the cluster that most tests share."""
    return free_address()


class TwoNodes:
    """The cluster, from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self._marked = Marked()
        self._nodes: list[subprocess.Popen[str]] = []
        # Ray makes sockets in it, whose paths must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))

    def start(self, *options: Sequence[str]) -> None:
        """Start a node for each, the head first."""
        for each in options:
            where = (f"--temp-dir={self._folder}",) if "--head" in each else ()
            node = subprocess.Popen(
                [*(RAY, "start", "--block"), *each, *BOUNDS, *where],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **self._marked.env, **PATIENCE, "PYTHONPATH": str(ROOT)},
            )
            self._nodes.append(node)
            assert node.stdout is not None
            said = []
            while not said or _STARTED not in said[-1]:
                said.append(node.stdout.readline())
                assert said[-1], f"the node is gone: {''.join(said)}"

    def workers(self) -> list[int]:
        """The processes in which models run, on both nodes."""
        found = []
        for pid in self._marked.environments():
            with suppress(OSError):  # it has ended
                if WORKER_MODULE.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    found.append(pid)
        return found

    def kill_last(self) -> None:
        """Let the machine of the node that was started last be gone, as far as Ray can see."""
        node = self._nodes.pop()
        node.terminate()
        node.communicate()

    def lose_the_head(self) -> None:
        """Let the machine of the head be gone, and wait until the others have given it up."""
        head, *others = self._nodes
        head.terminate()
        for node in (head, *others):
            node.communicate()
        self._nodes.clear()

    def stop(self) -> None:
        """Stop all nodes; what is left of them is killed."""
        while self._nodes:
            self.kill_last()
        for pid in self._marked.environments():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)


def usual(head: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of two nodes with four cores each, called ``here`` and ``there``."""
    port = head.rpartition(":")[2]
    return (
        (
            *("--head", f"--node-ip-address={HERE}", f"--port={port}", "--num-cpus=4"),
            *("--include-dashboard=false", '--resources={"here": 4}'),
        ),
        (
            *(f"--address={head}", f"--node-ip-address={THERE}", "--num-cpus=4"),
            '--resources={"there": 4}',
        ),
    )
