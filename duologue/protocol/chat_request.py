"""The body of ``POST /v1/chat/completions``. Unknown fields are ignored, at every depth.

This module must not know what a model can do; what is declared here but not built is refused by
``gateway.chat.checks``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

MAX_MESSAGES = 1024
MAX_TOOLS = 128
MAX_STOPS = 4

Text = Annotated[str, Meta(max_length=1 << 20)]
Name = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$", max_length=64)]
CallId = Annotated[str, Meta(min_length=1, max_length=128)]
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Tokens = Annotated[int, Meta(ge=1, le=1 << 20)]


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    pass


# Parts of a message


class TextPart(_Body, frozen=True, tag="text"):
    """Text."""

    text: Text


class RefusalPart(_Body, frozen=True, tag="refusal"):
    """Why an assistant did not answer; read as text."""

    refusal: Text


class AudioData(_Body, frozen=True):
    """A recording.

    Args:
        data: The file in base64.
        format: What it is; the content decides.
    """

    data: bytes
    format: str = "wav"


class InputAudioPart(_Body, frozen=True, tag="input_audio"):
    """Speech: read as its words, or heard as it is by a model that hears."""

    input_audio: AudioData


class ImageUrl(_Body, frozen=True):
    """A picture; ``url`` is a ``data:`` URL."""

    url: str


class ImagePart(_Body, frozen=True, tag="image_url"):
    """A picture, for models that see."""

    image_url: ImageUrl


class FilePart(_Body, frozen=True, tag="file"):
    """A document. No model here reads any."""


WrittenPart = TextPart | RefusalPart
UserPart = TextPart | InputAudioPart | ImagePart | FilePart


# Messages


class SystemMessage(_Body, frozen=True, tag="system", tag_field="role"):
    """How to answer."""

    content: Text | list[WrittenPart]


class DeveloperMessage(_Body, frozen=True, tag="developer", tag_field="role"):
    """The same under its newer name."""

    content: Text | list[WrittenPart]


class UserMessage(_Body, frozen=True, tag="user", tag_field="role"):
    """What a person said."""

    content: Text | list[UserPart]


class CalledFunction(_Body, frozen=True):
    """Which function was called, with arguments as JSON text."""

    name: Name
    arguments: Text


class MessageToolCall(_Body, frozen=True):
    """A call that the assistant made."""

    id: CallId
    function: CalledFunction
    type: Literal["function"] = "function"


class AudioReference(_Body, frozen=True):
    """A spoken answer of before, by its id."""

    id: str


class AssistantMessage(_Body, frozen=True, tag="assistant", tag_field="role"):
    """What the assistant answered."""

    content: Text | list[WrittenPart] | None = None
    refusal: Text | None = None
    tool_calls: Annotated[list[MessageToolCall], Meta(max_length=MAX_TOOLS)] | None = None
    audio: AudioReference | None = None


class ToolMessage(_Body, frozen=True, tag="tool", tag_field="role"):
    """What a function that was called returned."""

    content: Text | list[WrittenPart]
    tool_call_id: CallId


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


# Options


class FunctionSpec(_Body, frozen=True):
    """A function that may be called; ``parameters`` is a JSON Schema."""

    name: Name
    description: Text | None = None
    parameters: dict[str, Any] | None = None


class FunctionTool(_Body, frozen=True):
    """A tool. Only functions are built."""

    function: FunctionSpec
    type: Literal["function"] = "function"


class NamedFunction(_Body, frozen=True):
    """The name of a function."""

    name: str


class NamedTool(_Body, frozen=True):
    """This function must be called."""

    function: NamedFunction
    type: Literal["function"] = "function"


class TextFormat(_Body, frozen=True, tag="text"):
    """Any text."""


class JsonObjectFormat(_Body, frozen=True, tag="json_object"):
    """Any JSON object."""


class JsonSchema(_Body, frozen=True):
    """A schema that the answer obeys."""

    schema: dict[str, Any] | None = None
    name: str = "answer"


class JsonSchemaFormat(_Body, frozen=True, tag="json_schema"):
    """JSON that obeys a schema."""

    json_schema: JsonSchema


class VoiceId(_Body, frozen=True):
    """A voice as an object."""

    id: str


class AudioOutput(_Body, frozen=True):
    """How the answer is spoken.

    Args:
        voice: ``None``: the model's first.
        format: Of ``message.audio.data``; a streamed answer has ``pcm16`` alone, which is s16le
            mono at 24 kHz. ``None``: ``wav``, streamed ``pcm16``.
    """

    voice: str | VoiceId | None = None
    format: Literal["wav", "mp3", "flac", "opus", "aac", "pcm16"] | None = None


class StreamOptions(_Body, frozen=True):
    """With ``include_usage`` the last chunk says what was read and written."""

    include_usage: bool | None = None


class ChatCompletionRequest(_Body, frozen=True):
    """The body.

    Args:
        model: ``None``: the default one.
        max_tokens: The older name of ``max_completion_tokens``.
        modalities: What the answer consists of: ``text``, ``audio``, or speech with its text.
        n: How many answers; one.
    """

    messages: Annotated[list[Message], Meta(min_length=1, max_length=MAX_MESSAGES)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: (
        Annotated[str, Meta(max_length=256)]
        | Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(max_length=MAX_STOPS)
        ]
        | None
    ) = None
    seed: Int64 | None = None
    n: int | None = None
    tools: Annotated[list[FunctionTool], Meta(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: Annotated[list[Literal["text", "audio"]], Meta(min_length=1)] | None = None
    audio: AudioOutput | None = None
