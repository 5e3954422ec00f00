"""A real cluster of two nodes; what executors promise is tested on it in ``tests/cluster``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from duologue.core.errors import EngineError
from duologue.engines.executors.ray.executor import RayExecutor
from duologue.engines.messages import Placement
from duologue.engines.settings import RaySettings
from tests.fakes.marked import Marked
from tests.fakes.two_nodes import HERE, THERE, TwoNodes, address
from tests.unit.engines.executors.kinds import Ear, spec, stop

pytestmark = pytest.mark.ray


def place(group: str, **wanted: float) -> Placement:
    return Placement(group=group, strategy="PACK", bundles=(wanted,), index=0)


def parent_of(pid: int) -> int:
    (line,) = [
        each
        for each in Path(f"/proc/{pid}/status").read_text().splitlines()
        if each.startswith("PPid:")
    ]
    return int(line.split()[1])


def peers_of(pid: int) -> set[str]:
    """The addresses of this machine at which a process has TCP connections."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(each)
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes:
            raw = bytes.fromhex(fields[1].partition(":")[0])
            found.add(".".join(str(byte) for byte in reversed(raw)))
    return found


@pytest.mark.parametrize(("name", "where"), [("here", HERE), ("there", THERE)])
async def test_a_worker_runs_where_what_it_takes_is(
    two_nodes: TwoNodes, name: str, where: str
) -> None:
    executor = RayExecutor(RaySettings(address=address()))
    ear, marked = Ear(), Marked()
    worker = await executor.start(
        spec(env=marked.env, placement=place("g", CPU=1, **{name: 1})), ear
    )
    await ear.ready()
    assert peers_of(marked.pid()) == {where}
    await stop(worker, ear)
    await executor.close()
    await marked.gone()


@pytest.mark.parametrize(("strategy", "count"), [("PACK", 1), ("SPREAD", 2)])
async def test_the_workers_of_a_pipeline_lie_on_as_many_nodes_as_it_says(
    two_nodes: TwoNodes, strategy: str, count: int
) -> None:
    executor = RayExecutor(RaySettings(address=address()))
    ears, marks = [Ear(), Ear()], [Marked(), Marked()]
    workers = []
    for index, (ear, marked) in enumerate(zip(ears, marks, strict=True)):
        there = Placement(
            group=strategy, strategy=strategy, bundles=({"CPU": 1}, {"CPU": 1}), index=index
        )
        workers.append(await executor.start(spec(env=marked.env, placement=there), ear))
    for ear in ears:
        await ear.ready()
    assert len({frozenset(peers_of(marked.pid())) for marked in marks}) == count
    for worker, ear in zip(workers, ears, strict=True):
        await stop(worker, ear)
    await executor.close()


async def test_the_death_of_an_idle_actor_is_seen_and_takes_its_worker_along(
    two_nodes: TwoNodes,
) -> None:
    executor = RayExecutor(RaySettings(address=address()))
    ear, marked = Ear(), Marked()
    await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    os.kill(parent_of(marked.pid()), signal.SIGKILL)
    assert (await ear.lost()).reason == "its actor was lost (ActorDiedError)"
    await marked.gone()
    await executor.close()


async def test_what_the_cluster_does_not_have_is_named(two_nodes: TwoNodes) -> None:
    executor = RayExecutor(RaySettings(address=address(), place_timeout_s=2))
    with pytest.raises(EngineError, match=r"no room for the pipeline large \(.*'GPU': 3.*'CPU'"):
        await executor.start(spec(placement=place("large", CPU=1, GPU=3)), Ear())
    await executor.close()


async def test_without_a_cluster_none_is_started() -> None:
    executor = RayExecutor(RaySettings(address=f"{HERE}:1"))
    with pytest.raises(EngineError, match=r"127.0.0.2:1"):
        await executor.start(spec(), Ear())
    await executor.close()
