"""A text on its way through talker and codec: over an edge with credit, and fused.

The models are tiny and random; the engine, its stages and their runners are those of true ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from duologue.codecs.pcm import pcm_to_float
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark
from duologue.engines.pipeline import load_pipelines
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.engines.settings import EngineSettings
from duologue.telemetry import LabelSets, Metrics

pytestmark = pytest.mark.speech

TWO_STAGES = """
name: voice
stages:
  - name: talker
    runner: csm
    executor: inline
    edge: sounded_ahead
    credit: 2
    max_jobs: 1
    settings: {{part: talker, first_audio: {ahead}, slots: 1, temperature: 0, max_frames: 20,
               threads: 1, folder: {folder}}}
  - name: codec
    runner: csm
    executor: inline
    max_jobs: 1
    settings: {{part: codec, slots: 1, chunk_frames: 4, threads: 1, folder: {folder}}}
"""
FUSED = """
name: voice
stages:
  - name: fused
    runner: csm
    executor: inline
    max_jobs: 1
    settings: {{slots: 1, temperature: 0, max_frames: 20, chunk_frames: 4, threads: 1,
               folder: {folder}}}
"""
KINDS = {
    "fused": FUSED,
    "stages": TWO_STAGES.replace("{ahead}", "false"),
    "ahead": TWO_STAGES.replace("{ahead}", "true"),
}
CLAUSES = (SpeakText("Hello there.", 12), SpeakText("How are you?", 25))
FRAME_MS = 80


class Listener:
    """Takes what is heard, and lets so much more be made."""

    def __init__(self, engine: Engine, credit: int) -> None:
        self.engine = engine
        self.granted = credit
        self.chunks: list[AudioChunk] = []
        self.marks: list[SpeechMark] = []
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.heard = asyncio.Event()

    @property
    def heard_ms(self) -> int:
        return sum(len(each.pcm) // 2 * 1000 // each.rate_hz for each in self.chunks)

    def grant(self, credit: int) -> None:
        self.granted += credit
        self.engine.grant("r", credit)

    def on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case Output(payload=AudioChunk() as chunk):
                self.chunks.append(chunk)
                self.heard.set()
            case Output(payload=SpeechMark() as mark):
                self.marks.append(mark)
            case Ended():
                self.ended.set_result(event)


@asynccontextmanager
async def engine_of(text: str, folder: Path, place: Path) -> AsyncIterator[Engine]:
    path = place / "voice.yaml"
    await asyncio.to_thread(path.write_text, text.format(folder=folder))
    pipelines = await asyncio.to_thread(load_pipelines, [path])
    engine = Engine(pipelines, EngineSettings(), Metrics(LabelSets()))
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def say(engine: Engine, *, credit: int = 60_000, more: bool = False) -> Listener:
    listener = Listener(engine, credit)
    fence = Fence("s", SESSION_LANE, 0)
    engine.submit(Request("r", "voice", fence, more_input=True, credit=credit), listener)
    for clause in CLAUSES:
        engine.append("r", clause)
    if not more:
        engine.finish_input("r")
    return listener


@pytest.mark.parametrize("kind", KINDS)
async def test_all_ways_say_the_same_in_order(
    tiny_speech: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    folder = await asyncio.to_thread(tiny_speech, "csm")
    spoken = []
    for each in ("fused", kind):
        async with engine_of(KINDS[each], folder, tmp_path) as engine:
            listener = await say(engine)
            assert (await listener.ended).outcome is Outcome.COMPLETED
        at = 0
        for chunk in listener.chunks:
            assert chunk.start_sample == at
            at += len(chunk.pcm) // 2
        assert len(listener.chunks[0].pcm) == 2 * 1920  # the first frame by itself
        assert [(mark.text_end, mark.sample) for mark in listener.marks] == [
            (12, 20 * 1920),
            (25, 40 * 1920),
        ]
        spoken.append(pcm_to_float(b"".join(chunk.pcm for chunk in listener.chunks)))
    np.testing.assert_allclose(spoken[1], spoken[0], atol=2 / 32_000)


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_made_without_credit(
    tiny_speech: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    folder = await asyncio.to_thread(tiny_speech, "csm")
    async with engine_of(KINDS[kind], folder, tmp_path) as engine:
        listener = await say(engine, credit=1)
        while not listener.ended.done():
            listener.heard.clear()
            heard = asyncio.create_task(listener.heard.wait())
            await asyncio.wait((heard, listener.ended), return_when=asyncio.FIRST_COMPLETED)
            heard.cancel()
            # A step that has begun makes all of its chunk.
            assert listener.heard_ms <= listener.granted + 4 * FRAME_MS
            listener.grant(max(0, listener.heard_ms - listener.granted) + 1)
        assert listener.heard_ms == 40 * FRAME_MS


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancel_in_the_middle_frees_every_slot(
    tiny_speech: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    folder = await asyncio.to_thread(tiny_speech, "csm")
    async with engine_of(KINDS[kind], folder, tmp_path) as engine:
        for _ in range(3):
            listener = await say(engine, credit=100, more=True)
            await listener.heard.wait()
            engine.cancel("r")
            assert (await listener.ended).outcome is Outcome.CANCELLED
        listener = await say(engine)
        assert (await listener.ended).outcome is Outcome.COMPLETED
        assert listener.heard_ms == 40 * FRAME_MS
