from __future__ import annotations

from typing import Any

import msgspec
import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.chat_request import (
    ChatCompletionRequest,
    FilePart,
    ImagePart,
    InputAudioPart,
    NamedTool,
    TextPart,
    ToolMessage,
    UserMessage,
)
from duologue.protocol.json_refusals import body_refusal

DECODER = msgspec.json.Decoder(ChatCompletionRequest)


def read(**fields: Any) -> ChatCompletionRequest:
    body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
    return DECODER.decode(msgspec.json.encode(body))


def refusal(**fields: Any) -> ProtocolError:
    with pytest.raises(msgspec.MsgspecError) as caught:
        read(**fields)
    return body_refusal(caught.value)


def test_what_is_not_known_is_ignored_at_every_depth() -> None:
    asked = read(
        call={"id": "x"},
        metadata={"a": 1},
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache": {}}], "x": 1}
        ],
        audio={"voice": "alloy", "format": "wav", "new": True},
    )
    assert asked.messages == [UserMessage(content=[TextPart(text="Hi")])]


def test_nulls_mean_nothing_was_said() -> None:
    fields = ("stop", "tools", "tool_choice", "temperature", "stream", "modalities", "audio", "n")
    assert read(**dict.fromkeys(fields)) == read()


def test_each_part_of_a_users_message_is_known() -> None:
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "input_audio", "input_audio": {"data": "AAE=", "format": "mp3"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "file", "file": {"file_id": "x"}},
    ]
    (message,) = read(messages=[{"role": "user", "content": parts}]).messages
    assert isinstance(message, UserMessage)
    kinds = [type(part) for part in message.content]
    assert kinds == [TextPart, InputAudioPart, ImagePart, FilePart]
    assert isinstance(message.content[1], InputAudioPart)
    assert message.content[1].input_audio.data == b"\x00\x01"


def test_a_function_may_be_named() -> None:
    choice = read(tool_choice={"type": "function", "function": {"name": "f"}}).tool_choice
    assert isinstance(choice, NamedTool)
    assert choice.function.name == "f"


def test_a_tools_output_names_its_call() -> None:
    (message,) = read(messages=[{"role": "tool", "content": "4", "tool_call_id": "c"}]).messages
    assert message == ToolMessage(content="4", tool_call_id="c")


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": [{"content": "Hi"}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": "function", "content": ""}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
        ({"temperature": 2.5}, "invalid_value", "temperature"),
        ({"top_p": -1}, "invalid_value", "top_p"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"stop": ["a"] * 5}, "invalid_value", "stop"),
        ({"seed": 1 << 70}, "invalid_value", "seed"),
        ({"modalities": []}, "invalid_value", "modalities"),
        ({"modalities": ["video"]}, "invalid_value", "modalities[0]"),
        ({"audio": {"format": "ogg"}}, "invalid_value", "audio.format"),
        ({"tool_choice": "sometimes"}, "invalid_value", "tool_choice"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "invalid_value", "tools[0].type"),
        (
            {"tools": [{"type": "function", "function": {"name": "a b"}}]},
            "invalid_value",
            "tools[0].function.name",
        ),
        ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "input_audio", "input_audio": {"data": "!"}}],
                    }
                ]
            },
            "invalid_base64",
            "messages[0].content[0].input_audio.data",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    fields: dict[str, Any], code: str, param: str
) -> None:
    error = refusal(**fields)
    assert (error.code, error.param) == (code, param)
