"""Worker processes and what is too large for their links: real ones, killed as well."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duologue.core.fence import Fence
from duologue.engines.executors.process import ProcessExecutor
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Append, JobOutput, Open
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import Payload
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.policy_payloads import DecideActions
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.engines.settings import EngineSettings
from tests.fakes.copying_runner import installed
from tests.fakes.marked import Marked
from tests.patience import PATIENCE_S, until
from tests.unit.engines.executors.kinds import Ear, open_files, spec, stop

MIB = 2**20


@pytest.fixture
def runner_env(tmp_path: Path) -> Mapping[str, str]:
    return installed(tmp_path)


def image(number: int, size: int = MIB) -> ImageData:
    return ImageData(number.to_bytes(4, "little") * (size // 4), "png", 8, 8)


def slabs_mapped() -> int:
    """Parts of a slab that this process has; all others that ever had any are its children."""
    return Path("/proc/self/maps").read_text().count("memfd:duologue-slab")


class Ends:
    """Keeps what comes of requests."""

    def __init__(self) -> None:
        self.outputs: list[Payload] = []
        self.ended: list[Ended] = []
        self.news = asyncio.Event()

    def on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case Output(payload=payload):
                self.outputs.append(payload)
            case Ended():
                self.ended.append(event)
        self.news.set()

    async def until_ended(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.ended) < count:
                self.news.clear()
                await self.news.wait()


@pytest.mark.parametrize("slab_bytes", [0, 2 * MIB, 64 * MIB])
async def test_payloads_of_all_sizes_come_through_unchanged_and_in_order(
    runner_env: Mapping[str, str], slab_bytes: int
) -> None:
    executor = ProcessExecutor()
    ear = Ear()
    worker = await executor.start(spec("copying", env=runner_env, slab_bytes=slab_bytes), ear)
    await ear.ready()
    sizes = (0, 4, 60_000, 260_000, 300_000, MIB, 5 * MIB, 100)
    sent: list[Payload] = [image(number, size) for number, size in enumerate(sizes)]
    sent.append(DecideActions((b"\x01" * 150_528, b"", b"\x02" * 150_528), b"1234", "go", 1, 1))
    worker.send(Open("a", sent[0], input_ended=False))
    for payload in sent[1:]:
        worker.send(Append("a", payload))
    await ear.until(lambda: len(ear.of("a")) == len(sent))
    assert [each.payload for each in ear.of("a") if isinstance(each, JobOutput)] == sent
    assert executor.held_bytes == 0
    await stop(worker, ear)


async def test_nothing_is_left_of_workers_that_were_killed_with_payloads_under_way(
    runner_env: Mapping[str, str],
) -> None:
    files, mapped = open_files(), slabs_mapped()
    executor = ProcessExecutor()
    for _ in range(3):
        marked = Marked()
        ear = Ear()
        settings = {"times": 4}
        worker = await executor.start(
            spec("copying", env={**runner_env, **marked.env}, settings=settings), ear
        )
        await ear.ready()
        for number in range(10):
            worker.send(Open(f"job{number}", image(number, 2 * MIB)))
        await ear.until(lambda ear=ear: any(isinstance(e, JobOutput) for e in ear.messages))
        assert slabs_mapped() > mapped
        os.kill(marked.pid(), signal.SIGKILL)
        await ear.lost()
        await marked.gone()
        ear.reports.clear()
    assert executor.held_bytes == 0
    assert open_files() == files
    assert slabs_mapped() <= mapped


@asynccontextmanager
async def two_stages(env: Mapping[str, str], /, **second: object) -> AsyncIterator[Engine]:
    def stage(name: str, **fields: object) -> StageSpec:
        values = {"env": dict(env), **fields}
        return StageSpec(name=name, runner="copying", max_jobs=8, **values)

    pipeline = Pipeline(name="two", stages=(stage("first"), stage("second", **second)))
    engine = Engine({"two": pipeline}, EngineSettings())
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


def request(number: int, size: int = MIB) -> Request:
    return Request(f"r{number}", "two", Fence("s", 0, 0), first=image(number, size))


@pytest.mark.parametrize("slab_mib", [0, 1, 64])
async def test_what_one_stage_makes_reaches_the_next_and_the_caller(
    runner_env: Mapping[str, str], slab_mib: int
) -> None:
    files = open_files()
    ends = Ends()
    async with two_stages(runner_env, slab_mib=slab_mib) as engine:
        for number in range(20):
            if number >= 8:
                await ends.until_ended(number - 7)
            engine.submit(request(number), ends)
        await ends.until_ended(20)
        assert all(each.outcome is Outcome.COMPLETED for each in ends.ended)
        assert sorted(ends.outputs, key=lambda each: each.data[:4]) == [  # type: ignore[union-attr]
            image(number) for number in range(20)
        ]
        engine.note_fills()
    assert open_files() <= files


async def test_a_cancelled_request_gives_its_memory_back(
    runner_env: Mapping[str, str],
) -> None:
    ends = Ends()
    async with two_stages(runner_env) as engine:
        for number in range(60):
            engine.submit(request(number, 4 * MIB), ends)
            engine.cancel(f"r{number}")
            await ends.until_ended(number + 1)
        engine.submit(request(99), ends)
        await ends.until_ended(61)
        assert ends.outputs[-1] == image(99)
        await until(lambda: engine.held_bytes == 0)


async def test_a_stage_that_is_killed_gives_back_what_it_had_not_read(
    runner_env: Mapping[str, str],
) -> None:
    ends, marked = Ends(), Marked()
    second_env = {**runner_env, **marked.env}
    async with two_stages(runner_env, env=second_env) as engine:
        engine.submit(request(0), ends)
        await ends.until_ended(1)
        assert ends.outputs == [image(0)]
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
