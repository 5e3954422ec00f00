"""OpenAI's own Python SDK asks for chat completions; nothing but its base URL is not OpenAI's."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel

from duologue.codecs.containers.wav import wav_header
from duologue.settings import Settings
from tests.conformance.talking_gateway import API_KEY
from tests.fakes.chat_gateway import CLOCK, PLACE, WEATHER, chat_gateway, chat_settings
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps

HELLO = {"role": "user", "content": "hello"}
TEXT = "Well, you said hello."


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.syspath_prepend(tmp_path)
    return chat_settings(tmp_path)


@asynccontextmanager
async def official(settings: Settings) -> AsyncIterator[AsyncOpenAI]:
    async with (
        chat_gateway(settings) as server,
        AsyncOpenAI(api_key=API_KEY, base_url=server.url, max_retries=0) as client,
    ):
        yield client


async def test_text_whole_and_streamed(settings: Settings) -> None:
    async with official(settings) as client:
        whole = await client.chat.completions.create(model="gpt-4o", messages=[HELLO])
        assert whole.choices[0].message.content == TEXT
        assert whole.usage is not None
        stream = await client.chat.completions.create(
            model="duologue",
            messages=[HELLO],
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"call": {"id": "x"}, "metadata": {"a": "b"}},
        )
        chunks = [chunk async for chunk in stream]
        for chunk in chunks:
            ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
        said = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
        assert said == TEXT
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-1].usage == whole.usage
        assert [each.choices[0].finish_reason for each in chunks[-2:-1]] == ["stop"]


async def test_the_sdks_own_sum_of_a_stream_is_the_answer(settings: Settings) -> None:
    async with official(settings) as client:
        async with client.chat.completions.stream(
            model="caller", messages=[HELLO], tools=[WEATHER, CLOCK]
        ) as stream:
            answer = await stream.get_final_completion()
        (choice,) = answer.choices
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None
        called = [
            (each.function.name, each.function.arguments) for each in choice.message.tool_calls
        ]
        assert called == [("weather", PLACE), ("clock", "{}")]


async def test_a_function_is_called_and_its_output_answered(settings: Settings) -> None:
    async with official(settings) as client:
        first = await client.chat.completions.create(
            model="caller", messages=[HELLO], tools=[WEATHER], tool_choice="required"
        )
        message = first.choices[0].message
        assert message.tool_calls is not None
        (call,) = message.tool_calls
        assert json.loads(call.function.arguments) == {"place": "Paris"}
        second = await client.chat.completions.create(
            model="caller",
            messages=[
                HELLO,
                message.model_dump(exclude_none=True),
                {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
            ],
            tools=[WEATHER],
        )
        assert second.choices[0].message.content == "sunny"
        assert second.choices[0].finish_reason == "stop"


async def test_speech_in_and_speech_out(settings: Settings) -> None:
    pcm = beeps("hello again")
    recording = base64.b64encode(wav_header(BEEP_RATE_HZ, len(pcm)) + pcm).decode()
    question = {
        "role": "user",
        "content": [
            {"type": "input_audio", "input_audio": {"data": recording, "format": "wav"}},
        ],
    }
    async with official(settings) as client:
        whole = await client.chat.completions.create(
            model="gpt-4o-audio-preview",
            messages=[question],
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "wav"},
        )
        message = whole.choices[0].message
        assert message.content is None
        assert message.audio is not None
        assert message.audio.transcript == "Well, you said hello again."
        assert base64.b64decode(message.audio.data).startswith(b"RIFF")
        assert message.audio.expires_at > whole.created
        again = await client.chat.completions.create(
            model="gpt-4o-audio-preview",
            messages=[question, {"role": "assistant", "audio": {"id": message.audio.id}}, HELLO],
        )
        assert again.choices[0].message.content == TEXT


async def test_speech_is_streamed_in_pieces(settings: Settings) -> None:
    async with official(settings) as client:
        stream = await client.chat.completions.create(
            model="gpt-4o-audio-preview",
            messages=[HELLO],
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "pcm16"},
            stream=True,
        )
        deltas = [chunk.choices[0].delta.model_dump(exclude_none=True) async for chunk in stream]
        pieces = [delta["audio"] for delta in deltas if "audio" in delta]
        assert "id" in pieces[0]
        assert "".join(each.get("transcript", "") for each in pieces) == TEXT
        assert sum(len(base64.b64decode(each.get("data", ""))) for each in pieces) > 4800
        assert "expires_at" in pieces[-1]


class City(BaseModel):
    name: str


async def test_answers_by_schema_are_parsed_by_the_sdk(settings: Settings) -> None:
    async with official(settings) as client:
        # The model repeats what it is told, so it is told an answer.
        answer = await client.chat.completions.parse(
            model="mute",
            messages=[{"role": "user", "content": '{"name": "Paris"}'}],
            response_format=City,
        )
        assert answer.choices[0].message.parsed == City(name="Paris")


async def test_refusals_are_the_errors_that_the_sdk_has_names_for(settings: Settings) -> None:
    async with official(settings) as client:
        with pytest.raises(NotFoundError) as unknown:
            await client.chat.completions.create(model="nobody", messages=[HELLO])
        assert unknown.value.code == "model_not_found"
        with pytest.raises(BadRequestError) as mute:
            await client.chat.completions.create(
                model="mute",
                messages=[HELLO],
                modalities=["text", "audio"],
                audio={"voice": "alloy", "format": "wav"},
            )
        assert (mute.value.code, mute.value.param) == ("unsupported", "modalities")
        with pytest.raises(InternalServerError) as failed:
            await client.chat.completions.create(model="failing", messages=[HELLO])
        assert failed.value.code == "stage_failed"
        stream = await client.chat.completions.create(
            model="failing", messages=[HELLO], stream=True
        )
        with pytest.raises(APIError, match="A model failed"):
            [chunk async for chunk in stream]


async def test_models_are_listed(settings: Settings) -> None:
    async with official(settings) as client:
        models = [model.id async for model in await client.models.list()]
        assert models[:3] == ["duologue", "caller", "mute"]
        assert (await client.models.retrieve("mute")).id == "mute"
