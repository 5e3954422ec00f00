from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest
import uvloop

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.executors import ray_executor
from duologue.engines.executors.ray.executor import RayExecutor, forwarded
from duologue.engines.messages import Open, Placement
from duologue.engines.payloads import TextDelta
from duologue.engines.settings import EngineSettings, RaySettings
from tests.fakes.marked import Marked
from tests.fakes.pretend_cluster import CORES, NOWHERE
from tests.patience import PATIENCE_S
from tests.unit.engines.executors.kinds import PRETENDING, Ear, spec, stop


def test_a_worker_is_told_how_libraries_shall_work_and_not_where_it_is() -> None:
    told = {"HF_HOME": "/models", "NCCL_DEBUG": "INFO", "PYTHONPATH": "/here", "UCX_TLS": "tcp"}
    not_told = {
        "CUDA_VISIBLE_DEVICES": "3",
        "DUOLOGUE_HOSTS__LINK_SECRET": "secret",
        "HOME": "/root",
        "MASTER_ADDR": "10.0.0.1",
        "RANK": "0",
        "RAY_ADDRESS": "10.0.0.1:6379",
        "VLLM_HOST_IP": "10.0.0.1",
    }
    assert forwarded({**told, **not_told}) == told


def test_where_ray_is_not_installed_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'duologue\[ray\]'.*'process'"):
        ray_executor(EngineSettings(), package="no_such_package")


def test_making_it_loads_no_ray() -> None:
    assert isinstance(ray_executor(EngineSettings(), package="json"), RayExecutor)
    assert "ray" not in sys.modules


async def test_without_a_cluster_nothing_is_started_instead() -> None:
    executor = RayExecutor(RaySettings(address=NOWHERE), PRETENDING)
    marked = Marked()
    for _ in range(2):
        with pytest.raises(EngineError, match="'nowhere'"):
            await executor.start(spec(env=marked.env), Ear())
    assert marked.environments() == {}
    await executor.close()


async def test_without_room_the_start_fails_in_time_and_says_so() -> None:
    executor = RayExecutor(RaySettings(place_timeout_s=0.2), PRETENDING)
    large = Placement(group="large", strategy="PACK", bundles=({"CPU": CORES + 1},), index=0)
    ear = Ear()
    with pytest.raises(EngineError, match=r"stage/0: .*no room for the pipeline large"):
        await executor.start(spec(placement=large), ear)
    assert ear.losses == []
    await executor.close()


async def test_the_loss_of_the_driver_is_that_of_its_workers_and_the_next_start_heals() -> None:
    marked = Marked()
    program = ("/usr/bin/env", f"DUOLOGUE_TEST_MARK={marked.mark}", *PRETENDING)
    executor = RayExecutor(RaySettings(), program)
    workers = Marked()
    ears = [Ear(), Ear()]
    for ear in ears:
        await executor.start(spec(env=workers.env), ear)
        await ear.ready()
    driver = min(marked.environments())
    os.kill(driver, signal.SIGKILL)
    for ear in ears:
        assert "driver is gone" in (await ear.lost()).reason
    await workers.gone()
    ear = Ear()
    worker = await executor.start(spec(env=workers.env), ear)
    await ear.ready()
    await stop(worker, ear)
    await executor.close()
    await marked.gone()


def test_it_works_on_uvloop_as_well() -> None:
    async def answer() -> str:
        executor = RayExecutor(RaySettings(), PRETENDING)
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("one two")))
        await ear.ended("a")
        worker.kill()
        assert (await ear.lost()).reason == "it was killed by the engine"
        async with asyncio.timeout(PATIENCE_S):
            await executor.close()
        return ear.text("a")

    assert uvloop.run(answer()) == "one two"
