"""The life of all workers: started together, kept alive, stopped within a bound.

This module must not know stages or requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from duologue.core.errors import EngineError
from duologue.core.tasks import guard
from duologue.engines.executors.base import Executor
from duologue.engines.pools.replica import Replica, ReplicaChange, ReplicaState

log = structlog.get_logger(__name__)

Progress = Callable[[ReplicaChange], None]
"""Hears of each worker that becomes ready, or is lost, while the fleet starts."""


class Fleet:
    """All replicas of an engine, the task group that holds them, and where they run.

    Concurrency:
        Belongs to the event loop; one of the few owners of a task group.
    """

    def __init__(
        self, replicas: Sequence[Replica], executors: Sequence[Executor], stop_timeout_s: float
    ) -> None:
        self._replicas = replicas
        self._executors = executors
        self._stop_timeout_s = stop_timeout_s
        self._keeper: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._progress: Progress | None = None

    async def start(self, progress: Progress | None) -> None:
        """Start all workers and wait until they are warm.

        Raises:
            EngineError: A worker cannot be started; those that could are stopped again.
        """
        loop = asyncio.get_running_loop()
        self._progress = progress
        self._started = loop.create_future()
        self._keeper = loop.create_task(self._keep(), name="engine workers")
        if not self._replicas:
            self._started.set_result(None)
        try:
            await self._started
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> bool:
        """Stop all workers; takes little more than ``stop_timeout_s``.

        Returns:
            Whether every worker left by itself; the others were killed.
        """
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return True
        async with asyncio.TaskGroup() as group:
            for replica in self._replicas:
                group.create_task(replica.stop(self._stop_timeout_s))
        keeper.cancel()
        await asyncio.wait((keeper,))
        for executor in self._executors:
            await executor.close()
        killed = [replica.name for replica in self._replicas if replica.had_to_be_killed]
        if killed:
            log.error("workers_killed", workers=killed, limit_s=self._stop_timeout_s)
        return not killed

    def on_change(self, change: ReplicaChange) -> None:
        """A worker is warm, or was lost. After the start this is the pools' business alone."""
        started = self._started
        if started is None or started.done():
            return
        if self._progress is not None:
            self._progress(change)
        if change.loss is not None:
            loss = change.loss
            text = f"the worker {change.name} died: {loss.reason}"
            if change.phase:
                text += f" (in the phase {change.phase!r} of its start)"
            started.set_exception(EngineError(text, code=loss.code))
        elif all(each.state is ReplicaState.READY for each in self._replicas):
            started.set_result(None)

    async def _keep(self) -> None:
        async with asyncio.TaskGroup() as group:
            for replica in self._replicas:
                group.create_task(guard(replica.run(), self._on_crash), name=replica.name)

    def _on_crash(self, error: Exception) -> None:
        log.error("worker_keeper_crashed", exc_info=error)
        if self._started is not None and not self._started.done():
            self._started.set_exception(error)
