"""The fake engine and the real one on both executors keep the same contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import pytest_asyncio

from duologue.core.errors import EngineError
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import EnginePort, Request
from duologue.engines.settings import EngineSettings
from tests.fakes.engine import FakeEngine
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import FENCE, EnginePortContract, Harness, Listener


def words(payload: Payload) -> Sequence[Payload]:
    assert isinstance(payload, TextDelta)
    return [
        TextDelta(word if number == 0 else f" {word}")
        for number, word in enumerate(payload.text.split())
    ]


def words_until_fault(payload: Payload) -> Sequence[Payload | EngineError]:
    return [*words(payload)[:1], EngineError("scripted fault")]


def tones(payload: Payload) -> Sequence[Payload]:
    assert isinstance(payload, SpeakText)
    samples = len(payload.text) * 60 * 24
    chunks = [AudioChunk(bytes(4800), 24_000, start) for start in range(0, samples, 2400)]
    return [*chunks, SpeechMark(payload.text_end, samples)]


class FakeHarness:
    def __init__(self) -> None:
        self.fake = FakeEngine(
            {"echo": words, "narrow": words, "faulty": words_until_fault, "tone": tones},
            capacity={"narrow": 1},
        )
        self.engine: EnginePort = self.fake

    async def until(self, done: Callable[[], bool], listener: Listener) -> None:
        self.fake.deliver()
        assert done(), f"all was delivered, and it is not enough: {listener.events}"

    async def settle(self) -> None:
        self.fake.deliver()


class EngineHarness:
    def __init__(self, engine: Engine) -> None:
        self.engine: EnginePort = engine

    async def until(self, done: Callable[[], bool], listener: Listener) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                listener.news.clear()
                await listener.news.wait()

    async def settle(self) -> None:
        """A request that is answered at every stage has passed behind all that was before it."""
        for pipeline in ("echo", "tone", "faulty"):
            listener = Listener()
            first = SpeakText("x", 1) if pipeline == "tone" else TextDelta("x")
            self.engine.submit(Request("probe", pipeline, FENCE, first=first), listener)
            await self.until(lambda heard=listener: bool(heard.ends("probe")), listener)


def stage(runner: str, kind: str, **fields: object) -> StageSpec:
    return StageSpec(name="stage", runner=runner, executor=kind, **{"max_jobs": 64, **fields})


def pipelines(kind: str) -> dict[str, Pipeline]:
    stages = {
        "echo": stage("script", kind),
        "narrow": stage("script", kind, max_jobs=1, queue=0),
        "faulty": stage("script", kind, settings={"fault": {"kind": "raise", "at_chunk": 1}}),
        "tone": stage("tone", kind),
    }
    return {name: Pipeline(name=name, stages=(spec,)) for name, spec in stages.items()}


class TestFakeEngine(EnginePortContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return FakeHarness()


class TestInlineEngine(EnginePortContract):
    @pytest_asyncio.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        engine = Engine(pipelines("inline"), EngineSettings())
        await engine.start()
        yield EngineHarness(engine)
        assert await engine.stop()


class TestProcessEngine(EnginePortContract):
    """Two of the pipelines are enough to show it, and every child costs each test its start."""

    @pytest_asyncio.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        inline, process = pipelines("inline"), pipelines("process")
        engine = Engine(
            {**inline, "echo": process["echo"], "faulty": process["faulty"]}, EngineSettings()
        )
        await engine.start()
        yield EngineHarness(engine)
        assert await engine.stop()
