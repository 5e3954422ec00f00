"""A Ray cluster. The only module that imports Ray, and it translates its exceptions.

Runs in the driver's process and, for the class of the actors, in theirs. It must not know engines.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from duologue import __version__
from duologue.core.errors import EngineError
from duologue.engines.executors.ray.holder import Holder
from duologue.engines.executors.ray.messages import Birth
from duologue.engines.messages import Placement

KILL_S = 2.0
"""Time in which an actor must have killed its worker; then it is killed, and its worker with it."""

_FAILURES = (RayError, ConnectionError, RuntimeError, TypeError, ValueError)
"""What Ray raises of itself, or for what it was asked."""


@dataclass(slots=True)
class _Group:
    """Places that are set aside, or shall be."""

    handle: PlacementGroup
    was_ready: bool = False


class RayCluster:
    """Implements ``Cluster``.

    Calls that only register something block: nothing else happens in this process.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    async def join(self, address: str) -> None:
        """Join the cluster that runs at ``address``; none is ever started."""
        try:
            ray.init(address=address, configure_logging=False, log_to_driver=False)
        except _FAILURES as exc:
            raise EngineError(
                f"no Ray cluster can be joined at {address!r} ({_last_line(exc)}); start one on "
                "this machine with 'ray start --head', or join one with 'ray start --address=...'"
            ) from exc
        # Ray would end the process; when to leave is for the engine to say.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    async def reserve(self, placement: Placement) -> None:
        """Wait until the group's places are set aside."""
        group = self._groups.get(placement.group)
        if group is None:
            with _translated():
                handle = placement_group(
                    [dict(bundle) for bundle in placement.bundles],
                    strategy=placement.strategy,
                    name=f"duologue {placement.group}",
                )
            group = self._groups[placement.group] = _Group(handle)
        if not group.was_ready:
            await _result(group.handle.ready())
            group.was_ready = True

    async def give_up(self, placement: Placement) -> str:
        """Want a group no longer that has not been found; returns what there is instead."""
        problem = f"the cluster has no room for the pipeline {placement.group}"
        try:
            group = self._groups.get(placement.group)
            if group is not None and not group.was_ready:
                del self._groups[placement.group]
                remove_placement_group(group.handle)
            free = _rounded(ray.available_resources())
            there = _rounded(ray.cluster_resources())
        except _FAILURES as exc:
            return f"{problem}, and does not say what it has ({type(exc).__name__})"
        wanted = " + ".join(str(_rounded(bundle)) for bundle in placement.bundles)
        strategy = placement.strategy.lower()
        return f"{problem} ({wanted}, {strategy}): free are {free} of {there}"

    async def start(self, placement: Placement) -> RayActor:
        """Start an actor at its place. Its environment is that of the machine's Ray."""
        bundle = dict(placement.bundle)
        # Only where to find Duologue: the rest is the worker's, and Ray shows this to whoever asks.
        python_path = os.environ.get("PYTHONPATH")
        runtime_env = {"env_vars": {"PYTHONPATH": python_path}} if python_path else None
        with _translated():
            handle = (
                ray.remote(_HolderActor)
                .options(
                    num_cpus=bundle.pop("CPU", 0),
                    num_gpus=bundle.pop("GPU", 0),
                    memory=bundle.pop("memory", None),
                    resources=bundle,
                    max_concurrency=2,  # it waits, and can be told to kill
                    max_restarts=0,
                    runtime_env=runtime_env,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(
                        self._groups[placement.group].handle, placement.index
                    ),
                )
                .remote()
            )
        return RayActor(handle)

    async def leave(self) -> None:
        """Give the places back, and leave."""
        with _translated():
            for group in self._groups.values():
                remove_placement_group(group.handle)
            self._groups.clear()
            ray.shutdown()


class RayActor:
    """Implements ``Actor``."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def listen(self) -> tuple[str, int]:
        """Open a door on the actor's machine."""
        host, port, version = await _result(self._handle.listen_here.remote())
        if version != __version__:
            raise EngineError(
                f"the machine {host} has Duologue {version}, this one {__version__}: "
                "all need the same"
            )
        return host, port

    async def bear(self, birth: Birth, secret: bytes) -> None:
        """Start the worker."""
        problem = await _result(self._handle.bear_or_say.remote(birth, secret))
        if problem:
            raise EngineError(problem)

    async def wait(self) -> str:
        """Wait for the worker's end, or the actor's."""
        try:
            return cast(str, await asyncio.wrap_future(self._handle.wait.remote().future()))
        except RayError as exc:
            # No text of Ray's: it may quote what was printed.
            raise EngineError(f"its actor was lost ({type(exc).__name__})") from exc

    async def kill(self) -> None:
        """Let it kill its worker, and what that has started; then kill the actor."""
        with suppress(*_FAILURES, TimeoutError):
            async with asyncio.timeout(KILL_S):
                await asyncio.wrap_future(self._handle.kill.remote().future())
        with suppress(*_FAILURES):
            ray.kill(self._handle)


class _HolderActor(Holder):
    """What runs on the machine. Errors come back as text: they need not be unpickled then."""

    def listen_here(self) -> tuple[str, int, str]:
        host = ray.util.get_node_ip_address()
        return host, self.listen(host), __version__

    def bear_or_say(self, birth: Birth, secret: bytes) -> str:
        try:
            self.bear(birth, secret)
        except EngineError as exc:
            return exc.message
        return ""


async def _result(reference: Any) -> Any:
    with _translated():
        return await asyncio.wrap_future(reference.future())


@contextmanager
def _translated() -> Iterator[None]:
    """Nothing was said to a worker yet, or nothing of it can be in the text."""
    try:
        yield
    except _FAILURES as exc:
        raise EngineError(f"{type(exc).__name__}: {_last_line(exc)}") from exc


def _last_line(exc: Exception) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[-1] if lines else type(exc).__name__


def _rounded(resources: dict[str, float]) -> dict[str, float]:
    return {
        name: round(amount, 2)
        for name, amount in sorted(resources.items())
        if not name.startswith(("node:", "object_store_memory", "bundle"))
    }
