"""A chat request as a language model reads it.

Pure: recordings come as the words that were heard in them, or as sound. This module must not know
models or who speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from duologue.codecs.picture_urls import check_picture_url
from duologue.core.errors import ProtocolError
from duologue.engines.payloads import ChatMessage, ChatRequest, ToolCall, Tools, ToolSpec
from duologue.protocol.chat_request import (
    AssistantMessage,
    ChatCompletionRequest,
    DeveloperMessage,
    FilePart,
    ImagePart,
    InputAudioPart,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedTool,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from duologue.protocol.errors import ErrorCode, over_limit, refused, shown

MAX_PROMPT_CHARS = 4 << 20
MAX_IMAGE_CHARS = 8 << 20
MAX_SCHEMA_CHARS = 64 << 10
MAX_SCHEMA_DEPTH = 32
"""Grammars are made from schemas by recursion."""

_SEED_MASK = (1 << 32) - 1
_ANY_OBJECT = "{}"

PartIndex = tuple[int, int]
"""A message and a part of it, both counted from 0."""


def recordings(asked: ChatCompletionRequest) -> Iterator[tuple[PartIndex, bytes]]:
    """Yield what has to be heard before the prompt can be made."""
    for index, message in enumerate(asked.messages):
        if isinstance(message, UserMessage) and not isinstance(message.content, str):
            for number, part in enumerate(message.content):
                if isinstance(part, InputAudioPart):
                    yield (index, number), part.input_audio.data


def spoken_references(asked: ChatCompletionRequest) -> Iterator[tuple[int, str]]:
    """Yield the messages that name a spoken answer of before, and its id."""
    for index, message in enumerate(asked.messages):
        if isinstance(message, AssistantMessage) and message.audio is not None:
            yield index, message.audio.id


def chat_prompt(
    asked: ChatCompletionRequest,
    *,
    heard: Mapping[PartIndex, str | bytes],
    said: Mapping[int, str],
    sees: bool,
    max_pixels: int,
    max_tokens: int,
    seed: int,
    adapter: str = "",
) -> ChatRequest:
    """Return the request to the language model.

    Args:
        heard: The words of each recording; or its sound, for a model that hears.
        said: The words of each spoken answer that a message names.
        sees: The model understands pictures.
        max_pixels: Of one picture.
        max_tokens: The most that an answer may have here; a client may ask for less.
        seed: Where the client gives none.
        adapter: Weights to lay over the model's.

    Raises:
        ProtocolError: Something in it cannot be carried out.
    """
    messages = tuple(
        _joined_instructions(_messages(asked, heard, said, max_pixels if sees else None))
    )
    if sum(len(message.content) for message in messages) > MAX_PROMPT_CHARS:
        raise ProtocolError(
            f"the messages have more than {MAX_PROMPT_CHARS} characters; no model here reads that",
            code=ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            param="messages",
        )
    pictures = sum(len(image) for message in messages for image in message.images)
    if pictures > MAX_IMAGE_CHARS:
        raise over_limit("the pictures", pictures, MAX_IMAGE_CHARS, "messages", "characters")
    limit = asked.max_completion_tokens or asked.max_tokens or max_tokens
    stop = asked.stop or ()
    return ChatRequest(
        messages=messages,
        max_tokens=min(limit, max_tokens),
        temperature=asked.temperature or 0.0,
        seed=(seed if asked.seed is None else asked.seed) & _SEED_MASK,
        tools=_tools(asked),
        top_p=1.0 if asked.top_p is None else asked.top_p,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        schema=_schema(asked),
        adapter=adapter,
    )


def _messages(
    asked: ChatCompletionRequest,
    heard: Mapping[PartIndex, str | bytes],
    said: Mapping[int, str],
    max_pixels: int | None,
) -> Iterator[ChatMessage]:
    called: set[str] = set()
    for index, message in enumerate(asked.messages):
        match message:
            case SystemMessage(content=content) | DeveloperMessage(content=content):
                yield ChatMessage("system", _text(content))
            case UserMessage():
                yield _user(message, index, heard, max_pixels)
            case AssistantMessage():
                called.update(call.id for call in message.tool_calls or ())
                yield _assistant(message, said.get(index))
            case ToolMessage(content=content, tool_call_id=call_id):
                if call_id not in called:
                    raise refused(
                        f"no assistant message before this one calls {shown(call_id)}",
                        f"messages[{index}].tool_call_id",
                    )
                yield ChatMessage("tool", _text(content), call_id=call_id)


def _user(
    message: UserMessage, index: int, heard: Mapping[PartIndex, str | bytes], max_pixels: int | None
) -> ChatMessage:
    if isinstance(message.content, str):
        return ChatMessage("user", message.content)
    texts: list[str] = []
    images: list[str] = []
    sounds: list[bytes] = []
    for number, part in enumerate(message.content):
        param = f"messages[{index}].content[{number}]"
        match part:
            case TextPart(text=text):
                texts.append(text)
            case InputAudioPart():
                recording = heard[index, number]
                if isinstance(recording, bytes):
                    sounds.append(recording)
                else:
                    texts.append(recording)
            case ImagePart(image_url=image):
                images.append(_image(image.url, max_pixels, param))
            case FilePart():
                raise refused("no model here reads files", param, ErrorCode.UNSUPPORTED)
    text = "\n".join(texts)
    return ChatMessage("user", text, images=tuple(images), recordings=tuple(sounds))


def _image(url: str, max_pixels: int | None, param: str) -> str:
    if max_pixels is None:
        raise refused(
            "this model does not see; send text, or the words for the picture",
            param,
            ErrorCode.UNSUPPORTED,
        )
    if not url.startswith("data:image/"):
        raise refused(
            "pictures are not fetched from elsewhere: send a data:image/ URL",
            f"{param}.image_url.url",
            ErrorCode.UNSUPPORTED,
        )
    if len(url) > MAX_IMAGE_CHARS:
        raise over_limit("the picture", len(url), MAX_IMAGE_CHARS, param, "characters")
    check_picture_url(url, max_pixels, f"{param}.image_url.url")
    return url


def _assistant(message: AssistantMessage, said: str | None) -> ChatMessage:
    content = message.content if message.content is not None else message.refusal
    text = _text(content or "")
    calls = tuple(
        ToolCall(call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
    )
    return ChatMessage("assistant", text or said or "", calls=calls)


def _text(content: str | Sequence[TextPart | RefusalPart]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, TextPart) else part.refusal for part in content)


def _joined_instructions(messages: Iterator[ChatMessage]) -> Iterator[ChatMessage]:
    """Make one message of the system's first ones: many chat templates allow only one."""
    instructions: list[str] = []
    begun = False
    for message in messages:
        if not begun and message.role == "system":
            instructions.append(message.content)
            continue
        if not begun and instructions:
            yield ChatMessage("system", "\n\n".join(instructions))
        begun = True
        yield message
    if not begun:
        yield ChatMessage("system", "\n\n".join(instructions))


def _tools(asked: ChatCompletionRequest) -> Tools:
    functions = tuple(
        ToolSpec(
            tool.function.name,
            tool.function.description or "",
            _parameters(tool.function.parameters, index),
        )
        for index, tool in enumerate(asked.tools or ())
    )
    names = [function.name for function in functions]
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        raise refused(f"the function {shown(twice)} stands twice in tools", "tools")
    parallel = asked.parallel_tool_calls is not False
    choice = asked.tool_choice or "auto"
    if isinstance(choice, NamedTool):
        wanted = choice.function.name
        if wanted not in names:
            raise refused(f"{shown(wanted)} is no function of tools", "tool_choice.function.name")
        return Tools(functions, "required", wanted, parallel)
    if choice == "required" and not functions:
        raise refused("tool_choice is required, and there are no tools", "tool_choice")
    return Tools(functions, choice, parallel=parallel)


def _parameters(schema: dict[str, Any] | None, index: int) -> str:
    if not schema:
        return ToolSpec("").parameters
    return _encoded(schema, f"tools[{index}].function.parameters")


def _schema(asked: ChatCompletionRequest) -> str:
    match asked.response_format:
        case JsonObjectFormat():
            return _ANY_OBJECT
        case JsonSchemaFormat(json_schema=wanted):
            return _encoded(wanted.schema or {}, "response_format.json_schema.schema")
        case _:
            return ""


def _encoded(schema: dict[str, Any], param: str) -> str:
    text = msgspec.json.encode(schema).decode()
    if len(text) > MAX_SCHEMA_CHARS:
        raise refused(f"{param} has {len(text)} characters, the limit is {MAX_SCHEMA_CHARS}", param)
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise refused(f"{param} is nested more than {MAX_SCHEMA_DEPTH} deep", param)
    return text


def _depth(value: object) -> int:
    """How deep a value is nested, level by level: recursion is what this is to guard against."""
    depth = 0
    level: list[object] = [value]
    while level:
        depth += 1
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
        level = below
    return depth
