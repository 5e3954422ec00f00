"""A cluster on this machine without Ray: each actor is a process, as there.

``python pretend_cluster.py FD PARENT`` drives it. It has four cores, of which the workers of a
group take what they say.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import queue
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from duologue.core.errors import EngineError
from duologue.core.parent import die_with_parent
from duologue.engines.executors.ray.driver import main
from duologue.engines.executors.ray.holder import Holder
from duologue.engines.executors.ray.messages import Birth
from duologue.engines.messages import Placement

HOST = "127.0.0.1"
CORES = 4.0
KILL_S = 2.0
NOWHERE = "nowhere"
"""The address at which nobody is."""

_forking = multiprocessing.get_context("fork")


class PretendCluster:
    """Implements ``Cluster``."""

    def __init__(self) -> None:
        self._groups: dict[str, Placement] = {}

    async def join(self, address: str) -> None:
        if address == NOWHERE:
            raise EngineError(f"no Ray cluster can be joined at {address!r}")

    async def reserve(self, placement: Placement) -> None:
        self._groups.setdefault(placement.group, placement)
        if self._taken() > CORES:
            await asyncio.Event().wait()

    async def give_up(self, placement: Placement) -> str:
        del self._groups[placement.group]
        return f"the cluster has no room for the pipeline {placement.group}"

    async def start(self, placement: Placement) -> PretendActor:
        return PretendActor()

    async def leave(self) -> None:
        self._groups.clear()

    def _taken(self) -> float:
        places = self._groups.values()
        return sum(bundle.get("CPU", 0) for each in places for bundle in each.bundles)


class PretendActor:
    """Implements ``Actor``."""

    def __init__(self) -> None:
        self._ours, theirs = _forking.Pipe()
        self._process = _forking.Process(target=act, args=(theirs, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()

    async def listen(self) -> tuple[str, int]:
        return HOST, await self._ask("listen", HOST)

    async def bear(self, birth: Birth, secret: bytes) -> None:
        await self._ask("bear", birth, secret)

    async def wait(self) -> str:
        return str(await self._ask("wait"))

    async def kill(self) -> None:
        with suppress(OSError):  # it is dead already
            self._ours.send(("kill", ()))
        await asyncio.to_thread(self._process.join, KILL_S)
        self._process.kill()

    async def _ask(self, method: str, *arguments: object) -> Any:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        self._ours.send((method, arguments))
        loop.add_reader(self._ours.fileno(), answered.set_result, None)
        try:
            await answered
        finally:
            loop.remove_reader(self._ours.fileno())
        try:
            result = self._ours.recv()
        except EOFError:
            raise EngineError("its actor was lost (EOFError)") from None
        if isinstance(result, Problem):
            raise EngineError(result.text)
        return result


class Problem:
    """An error, on its way back."""

    def __init__(self, text: str) -> None:
        self.text = text


def act(line: Connection, parent_pid: int) -> None:
    """Be an actor."""
    die_with_parent(parent_pid)
    holder = Holder()
    calls: queue.Queue[tuple[str, tuple[Any, ...]]] = queue.Queue(maxsize=8)

    def listen() -> None:
        while True:
            method, arguments = line.recv()
            if method == "kill":
                holder.kill()
                os._exit(0)
            calls.put((method, arguments))

    threading.Thread(target=listen, daemon=True).start()
    # The thread that starts the worker must outlive it.
    while True:
        method, arguments = calls.get()
        try:
            line.send(getattr(holder, method)(*arguments))
        except EngineError as exc:
            line.send(Problem(exc.message))


if __name__ == "__main__":
    main(PretendCluster)
