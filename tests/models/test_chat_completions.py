"""Chat completions with the real models, asked by the official SDK: text, JSON, and speech."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import soundfile
from openai import AsyncOpenAI, BadRequestError

from duologue.app import running_app
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings

pytestmark = [
    pytest.mark.models,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

QUESTION = "What is the capital of France?"
RECORDING = Path(__file__).parents[2] / "duologue/assets/questions/france.flac"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[AsyncOpenAI]:
    settings = Settings(
        engine=EngineSettings(pipelines=("asr", "llm", "tts")),
        gateway=GatewaySettings(port=0, drain_timeout_s=0),
    )
    async with (
        running_app(settings) as app,
        AsyncOpenAI(api_key="any", base_url=f"{app.url}/v1", timeout=300, max_retries=0) as client,
    ):
        yield client
        assert app.engine.stats().requests == 0


def recording() -> str:
    """The spoken question as a WAV file in base64."""
    samples, rate_hz = soundfile.read(RECORDING, dtype="int16")
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(rate_hz)
        wav.writeframes(np.asarray(samples).tobytes())
    return base64.b64encode(file.getvalue()).decode()


async def test_a_question_gets_a_sensible_answer(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="duologue", messages=[{"role": "user", "content": QUESTION}]
    )
    (choice,) = answer.choices
    assert "Paris" in (choice.message.content or "")
    assert choice.finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 5
    assert answer.usage.completion_tokens > 1


async def test_an_answer_stops_where_it_should(client: AsyncOpenAI) -> None:
    message = {"role": "user", "content": "Count from one to twenty in words."}
    short = await client.chat.completions.create(model="duologue", messages=[message], max_tokens=5)
    assert short.choices[0].finish_reason == "length"
    assert short.usage is not None
    assert short.usage.completion_tokens <= 5
    stopped = await client.chat.completions.create(
        model="duologue", messages=[message], max_tokens=60, stop=["five", "Five", "5"]
    )
    assert stopped.choices[0].finish_reason == "stop"
    assert "five" not in (stopped.choices[0].message.content or "").lower()


async def test_an_answer_obeys_its_schema(client: AsyncOpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    answer = await client.chat.completions.create(
        model="duologue",
        messages=[{"role": "user", "content": QUESTION}],
        response_format=wanted,
        max_tokens=60,
    )
    assert json.loads(answer.choices[0].message.content or "") == {"city": "Paris"}
    wanted["json_schema"] = {"name": "place", "schema": {"type": "nonsense"}}
    with pytest.raises(BadRequestError) as refused:
        await client.chat.completions.create(
            model="duologue",
            messages=[{"role": "user", "content": QUESTION}],
            response_format=wanted,
        )
    assert refused.value.param == "response_format.json_schema.schema"


async def test_a_conversation_that_is_too_long_is_told_so(client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError) as refused:
        await client.chat.completions.create(
            model="duologue", messages=[{"role": "user", "content": "word " * 5000}]
        )
    assert refused.value.code == "context_length_exceeded"


async def test_a_spoken_question_gets_a_spoken_answer(client: AsyncOpenAI) -> None:
    part = {"type": "input_audio", "input_audio": {"data": recording(), "format": "wav"}}
    messages = [
        {"role": "system", "content": "Answer in one short sentence."},
        {"role": "user", "content": [part]},
    ]
    answer = await client.chat.completions.create(
        model="duologue",
        messages=messages,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "mp3"},
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert "Paris" in audio.transcript
    heard = await client.audio.transcriptions.create(
        model="whisper-1", file=("answer.mp3", base64.b64decode(audio.data), "audio/mpeg")
    )
    assert "Paris" in heard.text


async def test_speech_begins_before_the_text_is_complete(client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="duologue",
        messages=[{"role": "user", "content": "Tell me three facts about bees, please."}],
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "pcm16"},
        stream=True,
        max_tokens=120,
    )
    kinds = ""
    async for chunk in stream:
        audio = chunk.choices[0].delta.model_dump(exclude_none=True).get("audio") or {}
        kinds += "t" * ("transcript" in audio) + "s" * ("data" in audio)
    assert kinds.index("s") < kinds.rindex("t")
