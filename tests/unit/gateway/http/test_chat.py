from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from duologue.codecs.containers.wav import wav_header
from duologue.gateway.http.settings import HttpSettings
from tests.fakes.chat_gateway import (
    CLOCK,
    PLACE,
    WEATHER,
    ChatGateway,
    chat_gateway,
    chat_settings,
    question,
)
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import until

MS_PER_CHARACTER = 10


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    settings = chat_settings(tmp_path, HttpSettings(max_output_tokens=200_000))
    async with chat_gateway(settings) as gateway:
        yield gateway


def recording(words: str) -> dict[str, Any]:
    pcm = beeps(words)
    data = base64.b64encode(wav_header(BEEP_RATE_HZ, len(pcm)) + pcm).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def code_of(answer: dict[str, Any]) -> tuple[str, str | None]:
    return answer["error"]["code"], answer["error"]["param"]


async def test_a_question_gets_an_answer(server: ChatGateway) -> None:
    status, answer = await server.ask("hello", call={"id": "x"}, user="somebody", store=True)
    assert status == 200
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "duologue")
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "Well, you said hello."
    assert answer["usage"]["completion_tokens"] == 4


async def test_chunks_add_up_to_the_answer(server: ChatGateway) -> None:
    chunks = await server.stream(stream_options={"include_usage": True})
    *pieces, usage = chunks
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in pieces)
    assert text == "Well, you said hello."
    assert usage["usage"]["total_tokens"] == 5
    assert len({each["id"] for each in chunks}) == 1


async def test_an_answer_ends_at_its_limit(server: ChatGateway) -> None:
    _, answer = await server.ask(max_tokens=4)
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_recordings_are_answered_as_their_words(server: ChatGateway) -> None:
    messages = [{"role": "user", "content": [recording("hello again")]}]
    _, answer = await server.ask(messages=messages)
    assert answer["choices"][0]["message"]["content"] == "Well, you said hello again."


async def test_a_recording_that_cannot_be_read_is_told_with_its_place(server: ChatGateway) -> None:
    part = recording("hello")
    part["input_audio"]["data"] = base64.b64encode(b"this is no audio file").decode()
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hear:"}, part]}]
    status, answer = await server.ask(messages=messages)
    place = "messages[0].content[1].input_audio.data"
    assert (status, *code_of(answer)) == (400, "undecodable_audio", place)


async def test_functions_are_called_and_their_outputs_are_read(server: ChatGateway) -> None:
    _, answer = await server.ask("weather", model="caller", tools=[WEATHER, CLOCK])
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    calls = choice["message"]["tool_calls"]
    assert [each["function"] for each in calls] == [
        {"name": "weather", "arguments": PLACE},
        {"name": "clock", "arguments": "{}"},
    ]
    outputs = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
    messages = [question("weather")["messages"][0], choice["message"], *outputs]
    _, answer = await server.ask(messages=messages, model="caller", tools=[WEATHER, CLOCK])
    assert answer["choices"][0]["message"]["content"] == "sunny"


async def test_calls_are_streamed_by_index(server: ChatGateway) -> None:
    chunks = await server.stream(model="caller", tools=[WEATHER, CLOCK])
    pieces = [
        piece for each in chunks for piece in each["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert [piece["index"] for piece in pieces] == [0, 0, 0, 1, 1, 1]
    assert [piece["index"] for piece in pieces if "id" in piece] == [0, 1]
    first = "".join(each["function"]["arguments"] for each in pieces if each["index"] == 0)
    assert first == PLACE
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_spoken_answer_may_be_named_in_place_of_its_words(server: ChatGateway) -> None:
    _, answer = await server.ask(modalities=["text", "audio"], audio={"voice": "two"})
    audio = answer["choices"][0]["message"]["audio"]
    again = {"role": "user", "content": "again"}
    messages = [again, {"role": "assistant", "audio": {"id": audio["id"]}}, again]
    status, _ = await server.ask(messages=messages)
    assert status == 200
    messages[1] = {"role": "assistant", "audio": {"id": "audio_never"}}
    status, answer = await server.ask(messages=messages)
    assert (status, *code_of(answer)) == (400, "invalid_value", "messages[1].audio.id")


@pytest.mark.parametrize(
    ("fields", "status", "code", "param"),
    [
        ({"model": "nobody"}, 404, "model_not_found", "model"),
        ({"model": "echo"}, 400, "unsupported", "model"),
        ({"n": 2}, 400, "invalid_value", "n"),
        ({"messages": []}, 400, "invalid_value", "messages"),
        ({"messages": "x"}, 400, "invalid_value", "messages"),
        (
            {"modalities": ["text", "audio"], "audio": {"voice": "nobody"}},
            400,
            "invalid_value",
            "audio.voice",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused(
    server: ChatGateway, fields: dict[str, Any], status: int, code: str, param: str
) -> None:
    for stream in (False, True):
        got, answer = await server.ask(**fields, stream=stream)
        assert (got, *code_of(answer)) == (status, code, param)
    assert server.work == 0


async def test_names_of_stock_clients_mean_the_default_model(server: ChatGateway) -> None:
    _, answer = await server.ask(model="gpt-4o-mini")
    assert answer["model"] == "duologue"


async def test_a_model_that_fails_is_our_fault(server: ChatGateway) -> None:
    status, answer = await server.ask(model="failing")
    assert (status, *code_of(answer)) == (500, "stage_failed", None)
    body = question("hello", model="failing", stream=True)
    async with server.http.post("/v1/chat/completions", json=body) as streamed:
        assert streamed.status == 200
        events = (await streamed.text()).strip().split("\n\n")
    assert "stage_failed" in events[-2]
    assert events[-1] == "data: [DONE]"


@pytest.mark.parametrize(
    "how", [{"stream": True}, {}, {"stream": True, "modalities": ["text", "audio"]}]
)
async def test_whoever_hangs_up_stops_the_work(server: ChatGateway, how: dict[str, Any]) -> None:
    async def begin() -> None:
        body = question("go", model="endless", **how)
        async with server.http.post("/v1/chat/completions", json=body) as answer:
            await answer.content.readany()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(begin())
        await until(lambda: server.work > 0)
        asking.cancel()
    await until(lambda: server.work == 0)
    assert (await server.ask("hello"))[0] == 200


async def test_a_server_that_stops_lets_an_answer_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    settings = chat_settings(tmp_path, HttpSettings(max_output_tokens=200_000))
    # Beyond the drain there is no time at all.
    times = {"drain_timeout_s": 60.0, "close_timeout_s": 0.001}
    gateway = settings.gateway.model_copy(update=times)
    body = question("long " * 3000, model="mute")
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
        async with chat_gateway(settings.model_copy(update={"gateway": gateway})) as server:
            url = f"{server.url}/chat/completions"
            asking = group.create_task(http.post(url, json=body, headers=server.http.headers))
            await until(lambda: server.work > 0)
        answer = await asking
        assert answer.status == 200
        said = (await answer.json())["choices"][0]["message"]["content"]
    assert said.count("long") == 3000
