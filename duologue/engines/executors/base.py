"""Where a worker runs: the seam between the pools and threads, processes or a cluster.

A new executor is one file here, one line in ``EXECUTORS``, and one in ``KINDS`` of its tests, which
hold it to the contract. This module must not know what a worker runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from duologue.core.errors import ReplicaLost
from duologue.engines.messages import Report, ToWorker, WorkerSpec

REPLICA_LOST = ReplicaLost.default_code


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a worker is gone.

    Args:
        code: Stable name: ``replica_lost``, or the code of the error that it died of.
        reason: For logs.
    """

    code: str
    reason: str


class WorkerListener(Protocol):
    """Hears from one worker.

    Concurrency:
        Called on the event loop. Nothing is called after ``on_lost``.
    """

    def on_report(self, report: Report) -> None:
        """Take what the worker said; must not raise."""
        ...

    def on_lost(self, loss: Loss) -> None:
        """The worker is gone, whether asked to leave or not. Called exactly once."""
        ...


class Worker(Protocol):
    """A worker that was started.

    Concurrency:
        Belongs to the event loop.
    """

    def send(self, message: ToWorker) -> None:
        """Queue a message; all messages of one turn of the loop travel together."""
        ...

    def kill(self) -> None:
        """Be rid of the worker now, whatever it is doing; ``on_lost`` follows."""
        ...


class Executor(Protocol):
    """Starts workers."""

    async def start(self, spec: WorkerSpec, listener: WorkerListener) -> Worker:
        """Start a worker and return before it is ready: it reports ``Ready`` or ``Died``.

        Nothing is heard of it before this has returned. Whoever gives the attempt up cancels it.

        Raises:
            EngineError: It cannot be started at all.
        """
        ...

    async def close(self) -> None:
        """Let go of what workers shared. None of them lives; more may be started after it."""
        ...


@runtime_checkable
class HoldsPayloads(Protocol):
    """An executor that keeps large payloads beside the messages until they were read."""

    @property
    def held_bytes(self) -> int:
        """What it keeps now."""
        ...

    @property
    def fill(self) -> float:
        """How full the fullest place is in which it keeps any; 1 is the limit."""
        ...
