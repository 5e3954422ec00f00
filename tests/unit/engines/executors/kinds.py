"""All executors, and what their tests hold workers by. A new executor is one line in ``KINDS``."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duologue.engines.executors.base import Executor, Loss, Worker
from duologue.engines.executors.inline import InlineExecutor
from duologue.engines.executors.process import ProcessExecutor
from duologue.engines.executors.ray.executor import RayExecutor
from duologue.engines.messages import (
    Begun,
    FromWorker,
    JobEnded,
    JobOutput,
    JobTaken,
    Paused,
    Ready,
    Report,
    Rested,
    Stop,
    WorkerSpec,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.settings import RaySettings
from tests.fakes.two_nodes import HAS_RAY, address
from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Kind:
    """An executor under test.

    Args:
        has_processes: Its workers are processes, which can be killed.
        has_cluster: It needs the fixture ``two_nodes``.
    """

    make: Callable[[], Executor]
    has_processes: bool = True
    has_cluster: bool = False


PRETENDING = (sys.executable, "-u", str(Path(__file__).parents[3] / "fakes/pretend_cluster.py"))
"""Drives no cluster, see there."""

KINDS: dict[str, Kind] = {
    "inline": Kind(InlineExecutor, has_processes=False),
    "process": Kind(ProcessExecutor),
    "ray": Kind(lambda: RayExecutor(RaySettings(), PRETENDING)),
}
if HAS_RAY:
    KINDS["ray_two_nodes"] = Kind(
        lambda: RayExecutor(RaySettings(address=address())), has_cluster=True
    )


_OF_WORKER = Ready | Rested | Paused | JobTaken


class Ear:
    """Keeps what a worker says."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.phases: list[str] = []
        self.losses: list[Loss] = []
        self.news = asyncio.Event()

    def on_report(self, report: Report) -> None:
        assert not self.losses, "nothing is heard of a worker after its loss"
        match report.messages:
            case [Begun(phase=phase)]:
                self.phases.append(phase)
            case _:
                self.reports.append(report)
        self.news.set()

    def on_lost(self, loss: Loss) -> None:
        self.losses.append(loss)
        self.news.set()

    @property
    def messages(self) -> list[FromWorker]:
        return [message for report in self.reports for message in report.messages]

    def of(self, job: str) -> list[FromWorker]:
        """What came of a job, but for what it has taken."""
        jobs = [each for each in self.messages if not isinstance(each, _OF_WORKER)]
        return [each for each in jobs if each.job == job]

    def text(self, job: str) -> str:
        outputs = [each.payload for each in self.of(job) if isinstance(each, JobOutput)]
        return "".join(each.text for each in outputs if isinstance(each, TextDelta))

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                self.news.clear()
                await self.news.wait()

    async def ready(self) -> None:
        await self.until(lambda: bool(self.messages or self.losses))
        assert self.losses == []
        assert isinstance(self.messages[0], Ready)
        assert self.phases[:2] == ["import", "load"]

    async def ended(self, job: str) -> None:
        await self.until(lambda: any(isinstance(each, JobEnded) for each in self.of(job)))

    async def lost(self) -> Loss:
        await self.until(lambda: bool(self.losses))
        return self.losses[0]


def spec(runner: str = "script", name: str = "stage/0", **fields: object) -> WorkerSpec:
    return WorkerSpec(name=name, runner=runner, **fields)


async def stop(worker: Worker, ear: Ear) -> None:
    worker.send(Stop())
    await ear.lost()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def shared_memory() -> list[str]:
    """Name what lies in shared memory, but for what browsers and torch of other tests have."""
    others = (".org.chromium.", ".com.google.", "torch_")
    return sorted(each for each in os.listdir("/dev/shm") if not each.startswith(others))
