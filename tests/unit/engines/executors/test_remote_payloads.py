"""Workers whose large payloads come over TCP: of this machine, and of a cluster's other one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from duologue.engines.executors.base import HoldsPayloads
from duologue.engines.messages import Append, JobOutput, Open
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Outcome
from duologue.engines.settings import EngineSettings
from tests.fakes.copying_runner import installed
from tests.fakes.marked import Marked
from tests.patience import until
from tests.unit.engines.executors.kinds import KINDS, Ear, open_files, spec, stop
from tests.unit.engines.executors.test_large_payloads import MIB, Ends, image, request

TRANSPORTS = ("zeromq", *(("nixl",) if find_spec("nixl_cu12") else ()))
"""``make check-nixl`` has both."""


class Reached(NamedTuple):
    """An executor and how its workers get what is large."""

    name: str
    executor: HoldsPayloads
    transport: str


@pytest.fixture
def runner_env(tmp_path: Path) -> Mapping[str, str]:
    return installed(tmp_path)


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    """Its name in pipelines."""
    return str(request.param)


@pytest_asyncio.fixture
async def of_kind(process_kind: str, transport: str) -> AsyncIterator[Reached]:
    """An executor with processes, and by which names pipelines have it and its transport."""
    made = KINDS[process_kind].make()
    assert isinstance(made, HoldsPayloads)
    yield Reached(process_kind.partition("_")[0], made, transport)
    await made.close()  # type: ignore[attr-defined]


async def test_payloads_of_all_sizes_come_through_unchanged_and_in_order(
    runner_env: Mapping[str, str], of_kind: Reached
) -> None:
    executor = of_kind.executor
    ear = Ear()
    told = spec("copying", env=runner_env, transport=of_kind.transport, slab_bytes=8 * MIB)
    worker = await executor.start(told, ear)  # type: ignore[attr-defined]
    await ear.ready()
    sizes = (0, 4, 60_000, 260_000, 300_000, MIB, 5 * MIB, 12 * MIB, 100)
    sent: list[Payload] = [image(number, size) for number, size in enumerate(sizes)]
    worker.send(Open("a", sent[0], input_ended=False))
    for payload in sent[1:]:
        worker.send(Append("a", payload))
    await asyncio.sleep(0)  # all of one turn of the loop is one write
    assert executor.held_bytes > 0
    await ear.until(lambda: len(ear.of("a")) == len(sent))
    assert [each.payload for each in ear.of("a") if isinstance(each, JobOutput)] == sent
    await until(lambda: executor.held_bytes == 0)
    await stop(worker, ear)


async def test_nothing_is_left_of_workers_that_have_left_or_were_killed(
    runner_env: Mapping[str, str], of_kind: Reached
) -> None:
    files: list[int] = []
    for number in range(3):
        ear = Ear()
        told = spec("copying", env=runner_env, transport=of_kind.transport, slab_bytes=MIB)
        worker = await of_kind.executor.start(told, ear)  # type: ignore[attr-defined]
        await ear.ready()
        worker.send(Open("a", image(number, 300_000)))
        await ear.ended("a")
        files.append(open_files())
        if number % 2:
            worker.kill()
            await ear.lost()
        else:
            await stop(worker, ear)
    # Libraries keep some that they have opened for the first one.
    await until(lambda: open_files() < files[0])
    assert of_kind.executor.held_bytes == 0


@asynccontextmanager
async def two_stages(
    env: Mapping[str, str], of_kind: Reached, /, **second: object
) -> AsyncIterator[Engine]:
    name, executor = of_kind.name, of_kind.executor

    def stage(called: str, **fields: object) -> StageSpec:
        values = {"env": dict(env), "executor": name, "transport": of_kind.transport, **fields}
        return StageSpec(name=called, runner="copying", max_jobs=8, **values)

    pipeline = Pipeline(name="two", stages=(stage("first"), stage("second", **second)))
    assert pipeline.relays(0)
    engine = Engine(
        {"two": pipeline},
        EngineSettings(restart_backoff_s=0.01),
        executors={name: executor},  # type: ignore[dict-item]
    )
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def test_what_one_stage_makes_reaches_the_next_and_the_caller(
    runner_env: Mapping[str, str], of_kind: Reached
) -> None:
    ends = Ends()
    async with two_stages(runner_env, of_kind) as engine:
        for number in range(20):
            if number >= 8:
                await ends.until_ended(number - 7)
            engine.submit(request(number), ends)
        await ends.until_ended(20)
        assert all(each.outcome is Outcome.COMPLETED for each in ends.ended)
        assert sorted(ends.outputs, key=lambda each: each.data[:4]) == [  # type: ignore[union-attr]
            image(number) for number in range(20)
        ]
        await until(lambda: engine.held_bytes == 0)


async def test_cancelled_requests_give_their_memory_back(
    runner_env: Mapping[str, str], of_kind: Reached
) -> None:
    ends = Ends()
    async with two_stages(runner_env, of_kind) as engine:
        for number in range(30):
            engine.submit(request(number, 4 * MIB), ends)
            engine.cancel(f"r{number}")
            await ends.until_ended(number + 1)
        engine.submit(request(99), ends)
        await ends.until_ended(31)
        assert ends.outputs[-1] == image(99)
        await until(lambda: engine.held_bytes == 0)


async def test_a_stage_that_is_killed_fails_what_it_had_not_read_and_comes_back(
    runner_env: Mapping[str, str], of_kind: Reached
) -> None:
    ends, marked = Ends(), Marked()
    second_env = {**runner_env, **marked.env}
    async with two_stages(runner_env, of_kind, env=second_env) as engine:
        engine.submit(request(0), ends)
        await ends.until_ended(1)
        await until(lambda: engine.held_bytes == 0)
        pid = marked.pid()
        os.kill(pid, signal.SIGSTOP)
        for number in range(1, 5):
            engine.submit(request(number), ends)
        await until(lambda: engine.held_bytes == 4 * MIB)
        os.kill(pid, signal.SIGKILL)
        await ends.until_ended(5)
        assert {each.outcome for each in ends.ended[1:]} == {Outcome.FAILED}
        await until(lambda: engine.held_bytes == 0)
        engine.submit(request(5), ends)
        await ends.until_ended(6)
        assert ends.outputs == [image(0), image(5)]
