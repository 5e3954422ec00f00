"""The processes of the real models are killed in the middle of an answer: the call goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duologue.app import running_app
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.payloads import AudioChunk, SpeakText
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines
from duologue.engines.ports import Request
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.events import TranscriptionCompleted
from duologue.settings import Settings
from tests.faults.caller import Caller, caller_of, check_words
from tests.faults.faulty_gateway import Gateway, write_pipeline
from tests.unit.engines.engine_port_contract import Listener

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]

LONG_QUESTION = "Please count from one to fifty."
SHORT_QUESTION = "What is the capital of France?"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The default installation, but that its workers can be told apart."""
    shipped = load_pipelines(
        BUILT_IN_FOLDER / f"{name}.yaml" for name in EngineSettings().pipelines
    )
    files = tuple(write_pipeline(tmp_path, pipeline.stages[0]) for pipeline in shipped.values())
    return Settings(
        engine=EngineSettings(pipelines=(), pipeline_files=files),
        gateway=GatewaySettings(port=0, drain_timeout_s=0),
    )


async def spoken(gateway: Gateway, text: str) -> bytes:
    """A question, in the voice that answers."""
    listener = Listener()
    request = Request("question", "tts", Fence("test", SESSION_LANE, 0), SpeakText(text, len(text)))
    gateway.app.engine.submit(request, listener)
    while not listener.ends(request.id):
        listener.news.clear()
        await listener.news.wait()
    chunks = [each for each in listener.outputs(request.id) if isinstance(each, AudioChunk)]
    assert {chunk.rate_hz for chunk in chunks} == {24_000}
    return b"".join(chunk.pcm for chunk in chunks)


async def ask(caller: Caller, question: bytes) -> None:
    await caller.hush(400)
    await caller.speak(question)
    await caller.hush(3000)


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[Gateway]:
    async with running_app(settings) as app:
        yield Gateway(app)


async def test_each_model_is_killed_in_mid_answer_and_the_next_turn_is_answered(
    gateway: Gateway,
) -> None:
    async with caller_of(gateway.url, "semantic_vad", patience_s=90) as caller:
        long_question = await spoken(gateway, LONG_QUESTION)
        short_question = await spoken(gateway, SHORT_QUESTION)
        for stage in ("llm", "tts", "asr"):
            await ask(caller, long_question)
            await caller.response_sounds()
            gateway.kill(stage)
            if stage == "asr":
                # It has done its part; the answer does not need it.
                assert (await caller.response()).status in ("completed", "incomplete")
            else:
                await caller.check_failure()
            await ask(caller, short_question)
            check_words(await caller.response(), "Paris")
            assert "France" in caller.of(TranscriptionCompleted)[-1].transcript
            assert gateway.stats(stage).restarts == 1
