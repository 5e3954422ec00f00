"""Do realtime and batch work of one device go through one arbiter, wherever their workers are?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duologue.core.errors import EngineError
from duologue.core.fence import Fence, Lane
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import Ended, Outcome, Request, WorkClass
from duologue.engines.settings import EngineSettings
from tests.unit.engines.engine_port_contract import Listener

FAKES = "tests.fakes.sliced_runner"
FENCE = Fence("session", Lane("response_1"), 0)
WORKERS = ("inline", "process")


def pipelines(executor: str, **settings: object) -> dict[str, Pipeline]:
    calls = StageSpec(
        name="calls",
        runner=f"{FAKES}:TICKING",
        executor=executor,
        devices=("cpu",),
        work_class=WorkClass.REALTIME,
        deadline_ms=80,
    )
    pictures = StageSpec(
        name="pictures",
        runner=f"{FAKES}:SLICED",
        executor=executor,
        devices=("cpu",),
        work_class=WorkClass.BATCH,
        max_jobs=4,
        settings=settings,
    )
    return {each.name: Pipeline(name=each.name, stages=(each,)) for each in (calls, pictures)}


@asynccontextmanager
async def running(
    executor: str, device_bytes: int = 0, **settings: object
) -> AsyncIterator[Engine]:
    budgets = {"cpu": device_bytes} if device_bytes else {}
    engine = Engine(
        pipelines(executor, **settings),
        EngineSettings(device_bytes=budgets, restart_backoff_s=0.01),
    )
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()


async def ended(listener: Listener, count: int = 1) -> list[Ended]:
    async with asyncio.timeout(30):
        while len(ends := ends_of(listener)) < count:
            listener.news.clear()
            await listener.news.wait()
    return ends


def ends_of(listener: Listener) -> list[Ended]:
    return [event for event in listener.events if isinstance(event, Ended)]


def ask(engine: Engine, pipeline: str, name: str, text: str, listener: Listener) -> None:
    engine.submit(Request(name, pipeline, FENCE, TextDelta(text)), listener)


@pytest.mark.parametrize("executor", WORKERS)
async def test_pictures_are_made_beside_frames_and_all_come(executor: str) -> None:
    frames, pictures = Listener(), Listener()
    async with running(executor, slices=20, part_s=0.001) as engine:
        for number in range(3):
            ask(engine, "pictures", f"picture {number}", "a cat", pictures)
        for number in range(20):
            ask(engine, "calls", f"frame {number}", "hello", frames)
            await ended(frames, number + 1)
        ends = await ended(pictures, 3)
    assert {end.outcome for end in [*ends, *ends_of(frames)]} == {Outcome.COMPLETED}


@pytest.mark.parametrize("executor", WORKERS)
async def test_a_model_that_cannot_be_cut_short_enough_says_so_at_start(executor: str) -> None:
    with pytest.raises(EngineError, match=r"takes 41\.0 ms.*shares cpu.*Give it a device of its"):
        async with running(executor, part_s=0.041):
            pass


@pytest.mark.parametrize("executor", WORKERS)
async def test_memory_is_given_out_before_anything_is_made(executor: str) -> None:
    small, large = Listener(), Listener()
    async with running(executor, 1100, model_bytes=100, bytes_per_letter=250, slices=3) as engine:
        ask(engine, "pictures", "large", "abcde", large)
        for number in range(3):
            ask(engine, "pictures", f"small {number}", "abc", small)
        (refused,) = await ended(large)
        ends = await ended(small, 3)
        held = engine.held_device_bytes
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "limit_exceeded")
    assert {end.outcome for end in ends} == {Outcome.COMPLETED}
    assert held == 100, "what the model takes for good"


async def test_what_a_lost_worker_held_is_free_for_the_next() -> None:
    lost, after = Listener(), Listener()
    async with running("process", 1100, bytes_per_letter=150, crashes_at="crash") as engine:
        ask(engine, "pictures", "lost", "crash", lost)
        (end,) = await ended(lost)
        assert end.code == "replica_lost"
        assert engine.held_device_bytes == 0
        ask(engine, "pictures", "after", "abcde", after)
        (end,) = await ended(after)
        assert end.outcome is Outcome.COMPLETED
