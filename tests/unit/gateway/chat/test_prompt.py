from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import encode
from duologue.core.errors import ClientError
from duologue.engines.payloads import ChatMessage, ChatRequest, ToolCall, ToolSpec
from duologue.gateway.chat.prompt import (
    MAX_IMAGE_CHARS,
    MAX_PROMPT_CHARS,
    chat_prompt,
    recordings,
    spoken_references,
)
from duologue.protocol.chat_request import ChatCompletionRequest
from tests.fakes.pictures import picture_url

PICTURE = picture_url(7, "png")
MAX_PIXELS = 1_000_000
USER = {"role": "user", "content": "Hi"}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def read(**fields: Any) -> ChatCompletionRequest:
    return msgspec.convert({"messages": [USER], **fields}, ChatCompletionRequest)


def prompt(**fields: Any) -> ChatRequest:
    context = {
        "heard": {},
        "said": {},
        "sees": False,
        "max_pixels": MAX_PIXELS,
        "max_tokens": 100,
        "seed": 7,
    }
    context.update(
        {key: fields.pop(key) for key in list(fields) if key in ("heard", "said", "sees")}
    )
    return chat_prompt(read(**fields), **context)


def refusal(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(ClientError) as caught:
        prompt(**fields)
    return caught.value.code, caught.value.param


def test_a_question_is_a_question() -> None:
    assert prompt() == ChatRequest((ChatMessage("user", "Hi"),), max_tokens=100, seed=7)


def test_roles_and_parts_become_messages() -> None:
    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "system", "content": "Now answer."},
        {"role": "assistant", "content": None, "refusal": "Not that."},
    ]
    assert prompt(messages=messages).messages == (
        ChatMessage("system", "Be kind.\n\nBe brief."),
        ChatMessage("user", "a\nb"),
        ChatMessage("assistant", "No."),
        ChatMessage("system", "Now answer."),
        ChatMessage("assistant", "Not that."),
    )


def test_instructions_alone_are_a_prompt() -> None:
    only = {"role": "system", "content": "Greet."}
    assert prompt(messages=[only]).messages == (ChatMessage("system", "Greet."),)


def test_calls_and_their_outputs_belong_together() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    assert prompt(messages=messages).messages[1:] == (
        ChatMessage("assistant", "", calls=(ToolCall("c1", "weather", "{}"),)),
        ChatMessage("tool", "sunny", call_id="c1"),
    )
    assert refusal(messages=messages[::2]) == ("invalid_value", "messages[1].tool_call_id")


def test_recordings_are_read_as_their_words() -> None:
    part = {"type": "input_audio", "input_audio": {"data": b"\x01", "format": "wav"}}
    messages = [USER, {"role": "user", "content": [{"type": "text", "text": "Answer:"}, part]}]
    assert list(recordings(read(messages=messages))) == [((1, 1), b"\x01")]
    made = prompt(messages=messages, heard={(1, 1): "What time is it?"})
    assert made.messages[1] == ChatMessage("user", "Answer:\nWhat time is it?")
    made = prompt(messages=messages, heard={(1, 1): b"pcm"})
    assert made.messages[1] == ChatMessage("user", "Answer:", recordings=(b"pcm",))


def test_a_spoken_answer_is_known_by_its_id() -> None:
    messages = [USER, {"role": "assistant", "audio": {"id": "audio_1"}}, USER]
    assert list(spoken_references(read(messages=messages))) == [(1, "audio_1")]
    assert prompt(messages=messages, said={1: "Hello."}).messages[1] == ChatMessage(
        "assistant", "Hello."
    )


def test_pictures_are_for_models_that_see() -> None:
    def showing(url: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]

    picture = PICTURE
    place = "messages[0].content[0]"
    assert refusal(messages=showing(picture)) == ("unsupported", place)
    seen = prompt(messages=showing(picture), sees=True)
    assert seen.messages == (ChatMessage("user", "", images=(picture,)),)
    elsewhere = showing("http://127.0.0.1/secret.png")
    assert refusal(messages=elsewhere, sees=True) == ("unsupported", f"{place}.image_url.url")


def test_a_picture_is_told_from_its_header() -> None:
    def shown(url: str) -> tuple[str, str | None]:
        part = {"type": "image_url", "image_url": {"url": url}}
        return refusal(messages=[{"role": "user", "content": [part]}], sees=True)

    place = "messages[0].content[0].image_url.url"
    assert shown("data:image/png;base64,AAAA") == ("undecodable_image", place)
    assert shown("data:image/png;base64,A?") == ("undecodable_image", place)
    assert shown("data:image/png,AAAA") == ("undecodable_image", place)
    large = url_of(encode(np.zeros((1, MAX_PIXELS + 1, 3), np.uint8), "png"))
    assert shown(large) == ("limit_exceeded", place)


def test_files_are_for_nobody() -> None:
    messages = [{"role": "user", "content": [{"type": "file", "file": {}}]}]
    assert refusal(messages=messages) == ("unsupported", "messages[0].content[0]")


def test_limits_and_luck_are_the_clients_within_ours() -> None:
    assert prompt(max_tokens=5).max_tokens == 5
    assert prompt(max_completion_tokens=6, max_tokens=5).max_tokens == 6
    assert prompt(max_tokens=5000).max_tokens == 100
    lucky = prompt(temperature=0.5, top_p=0.9, seed=-1, stop="x")
    assert (lucky.temperature, lucky.top_p, lucky.stop) == (0.5, 0.9, ("x",))
    assert lucky.seed == (1 << 32) - 1
    assert prompt(stop=["a", "b"]).stop == ("a", "b")
    assert prompt(stop="").stop == ()


def test_tools_come_with_what_may_be_chosen() -> None:
    tools = prompt(tools=[WEATHER]).tools
    assert tools.functions == (ToolSpec("weather", "", '{"type":"object"}'),)
    assert (tools.choice, tools.only, tools.parallel) == ("auto", "", True)
    named = {"type": "function", "function": {"name": "weather"}}
    one = prompt(tools=[WEATHER], tool_choice=named, parallel_tool_calls=False).tools
    assert (one.choice, one.only, one.parallel) == ("required", "weather", False)
    assert prompt(tools=[WEATHER], tool_choice="none").tools.choice == "none"
    bare = {"type": "function", "function": {"name": "bare"}}
    assert prompt(tools=[bare]).tools.functions == (ToolSpec("bare"),)


def test_tools_that_contradict_each_other_are_refused() -> None:
    other = {"type": "function", "function": {"name": "other"}}
    assert refusal(tools=[WEATHER, WEATHER]) == ("invalid_value", "tools")
    assert refusal(tool_choice="required") == ("invalid_value", "tool_choice")
    unknown = refusal(tools=[WEATHER], tool_choice=other)
    assert unknown == ("invalid_value", "tool_choice.function.name")


def test_the_form_of_an_answer_is_a_schema() -> None:
    assert prompt(response_format={"type": "text"}).schema == ""
    assert prompt(response_format={"type": "json_object"}).schema == "{}"
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    assert prompt(response_format=wanted).schema == '{"type":"object"}'
    free = {"type": "json_schema", "json_schema": {"name": "x"}}
    assert prompt(response_format=free).schema == "{}"


def test_schemas_have_limits() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"items": [deep]}
    long = {"description": "x" * 70_000}
    for schema in (deep, long):
        wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
        code, param = refusal(response_format=wanted)
        assert (code, param) == ("invalid_value", "response_format.json_schema.schema")
    tool = {"type": "function", "function": {"name": "f", "parameters": deep}}
    assert refusal(tools=[tool]) == ("invalid_value", "tools[0].function.parameters")


def test_more_than_any_model_reads_is_refused_at_once() -> None:
    half = {"role": "user", "content": "x" * (1 << 20)}
    messages = [half] * (MAX_PROMPT_CHARS // (1 << 20) + 1)
    assert refusal(messages=messages) == ("context_length_exceeded", "messages")


def test_too_many_pictures_are_refused() -> None:
    url = "data:image/png;base64," + "A" * (9 << 20)
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    assert refusal(messages=messages, sees=True) == ("limit_exceeded", "messages[0].content[0]")
    noise = np.random.default_rng(0).integers(0, 256, (700, 700, 3), np.uint8)
    part = {"type": "image_url", "image_url": {"url": url_of(encode(noise, "png"))}}
    several = [{"role": "user", "content": [part] * (MAX_IMAGE_CHARS // 1_900_000 + 1)}]
    assert refusal(messages=several, sees=True) == ("limit_exceeded", "messages")
