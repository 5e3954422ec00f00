"""Does a request visit the stations in order, and does nothing else happen to it?

The stations, as ``docs/frame-path.md`` has them from the port on: request table, stage pool,
worker, runner, and back.
"""

from __future__ import annotations

import asyncio
from array import array

import msgspec
import pytest

from duologue.core.fence import Fence, Lane
from duologue.engines.executors import EXECUTORS, IN_A_CLUSTER
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    SpeechMark,
    VoiceActivity,
)
from duologue.engines.pipeline import (
    BUILT_IN_FOLDER,
    Pipeline,
    StageSpec,
    load_pipelines,
    stage_keys,
)
from duologue.engines.ports import Ended, Outcome, Request
from duologue.engines.runners.scripted import TONE_RATE_HZ
from duologue.engines.settings import EngineSettings
from duologue.telemetry.metrics import LabelSets, Metrics
from tests.patience import PATIENCE_S
from tests.unit.engines.engine_port_contract import Listener

FENCE = Fence("session", Lane("response_1"), 4)
QUESTION = ChatRequest((ChatMessage("user", "please say this"),), max_tokens=16)


async def ended(listener: Listener) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not listener.ends():
            listener.news.clear()
            await listener.news.wait()


@pytest.fixture
def scripted() -> Pipeline:
    """The pipeline that ships."""
    files = [BUILT_IN_FOLDER / "scripted.yaml"]
    return load_pipelines(files)["scripted"]


@pytest.mark.parametrize("kind", sorted(EXECUTORS.keys() - IN_A_CLUSTER))
async def test_a_question_becomes_words_and_words_become_speech_with_marks(
    kind: str, scripted: Pipeline
) -> None:
    stages = tuple(msgspec.structs.replace(stage, executor=kind) for stage in scripted.stages)
    pipelines = {"scripted": Pipeline(name="scripted", stages=stages)}
    metrics = Metrics(LabelSets(stages=stage_keys(pipelines.values())))
    engine = Engine(pipelines, EngineSettings(), metrics)
    listener = Listener()
    await engine.start()
    try:
        engine.submit(Request("r", "scripted", FENCE, first=QUESTION, credit=60_000), listener)
        await ended(listener)
    finally:
        assert await engine.stop()

    assert {event.fence for event in listener.events} == {FENCE}
    assert listener.events[-1] == Ended("r", FENCE, Outcome.COMPLETED)
    audio = [each for each in listener.outputs() if isinstance(each, AudioChunk)]
    marks = [each for each in listener.outputs() if isinstance(each, SpeechMark)]
    assert len(audio) + len(marks) == len(listener.outputs()), "the words stay inside"
    # Speech is without a gap, and each mark stands where its word ends.
    position = 0
    for chunk in audio:
        assert (chunk.rate_hz, chunk.start_sample) == (TONE_RATE_HZ, position)
        position += len(chunk.pcm) // 2
    assert [mark.text_end for mark in marks] == [len("please"), len("please say"), 15]
    assert marks[-1].sample == position == 15 * 60 * TONE_RATE_HZ // 1000
    # Both stages worked, and neither is holding anything.
    for stage in ("scripted.words", "scripted.tones"):
        assert sum(metrics.stage_queue[stage].counts) == 1
        assert sum(metrics.stage_step[stage].counts) > 0
    stats = engine.stats()
    assert (stats.requests, [stage.busy for stage in stats.stages]) == (0, [0, 0])


async def test_without_credit_the_first_stage_waits_for_the_last() -> None:
    """What a listener does not take is not made: not far beyond the credit, at either stage."""
    words = StageSpec(name="words", runner="script", executor="inline", credit=2, edge="text_only")
    tones = StageSpec(name="tones", runner="tone", executor="inline")
    pipeline = Pipeline(name="speech", stages=(words, tones))
    metrics = Metrics(LabelSets(stages=stage_keys([pipeline])))
    engine = Engine({"speech": pipeline}, EngineSettings(), metrics)
    listener = Listener()
    await engine.start()
    try:
        long_text = ChatRequest((ChatMessage("user", "word " * 500),), max_tokens=500)
        engine.submit(Request("r", "speech", FENCE, first=long_text, credit=1), listener)
        async with asyncio.timeout(PATIENCE_S):
            while not listener.outputs():
                listener.news.clear()
                await listener.news.wait()
        # The first stage has spent its credit of two words, and one was given back.
        assert sum(metrics.stage_step["speech.words"].counts) <= 4
        assert len(listener.outputs()) == 1
        engine.cancel("r")
        await ended(listener)
        assert len(listener.outputs()) == 1
    finally:
        assert await engine.stop()


async def test_microphone_audio_comes_back_as_voice_activity_at_its_place() -> None:
    stage = StageSpec(
        name="vad",
        runner="energy_vad",
        executor="process",
        max_jobs=8,
        settings={"window_ms": 40},
    )
    engine = Engine({"vad": Pipeline(name="vad", stages=(stage,))}, EngineSettings())
    listener = Listener()
    await engine.start()
    try:
        engine.submit(Request("r", "vad", FENCE, more_input=True), listener)
        for number in range(10):
            level = 4000 if 3 <= number < 6 else 0
            pcm = array("h", [level, -level] * 320).tobytes()
            engine.append("r", AudioChunk(pcm, 16_000, number * 640))
        engine.finish_input("r")
        await ended(listener)
    finally:
        assert await engine.stop()
    heard = [each for each in listener.outputs() if isinstance(each, VoiceActivity)]
    assert [each.end_sample for each in heard] == [640 * number for number in range(1, 11)]
    assert [round(each.probability) for each in heard] == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
