"""The answers of ``POST /v1/chat/completions``: whole, or in chunks.

This module must not know how an answer comes about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

FinishReason = Literal["stop", "length", "tool_calls"]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    pass


class PromptDetails(_Answer, frozen=True):
    """Of the tokens that were read."""

    cached_tokens: int = 0
    audio_tokens: int = 0


class CompletionDetails(_Answer, frozen=True):
    """Of the tokens that were written."""

    reasoning_tokens: int = 0
    audio_tokens: int = 0


class CompletionUsage(_Answer, frozen=True):
    """What was read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class CalledFunction(_Answer, frozen=True):
    """Which function is called, with arguments as JSON text."""

    name: str
    arguments: str


class CompletionToolCall(_Answer, frozen=True):
    """A call that the client should make."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


class CompletionAudio(_Answer, frozen=True):
    """The spoken answer.

    Args:
        id: Stands for the answer in later messages, until ``expires_at`` (Unix seconds).
        data: A file in base64.
        transcript: Empty where no text was asked for.
    """

    id: str
    data: bytes
    expires_at: int
    transcript: str


class CompletionMessage(_Answer, frozen=True):
    """The answer. ``content`` is null where it is spoken, or only calls functions."""

    content: str | None
    refusal: None = None
    role: Literal["assistant"] = "assistant"
    tool_calls: Sequence[CompletionToolCall] | UnsetType = UNSET
    audio: CompletionAudio | UnsetType = UNSET


class CompletionChoice(_Answer, frozen=True):
    """One answer; there is one."""

    message: CompletionMessage
    finish_reason: FinishReason
    index: int = 0
    logprobs: None = None


class ChatCompletion(_Answer, frozen=True):
    """A whole answer. ``created``: Unix seconds."""

    id: str
    created: int
    model: str
    choices: Sequence[CompletionChoice]
    usage: CompletionUsage
    object: Literal["chat.completion"] = "chat.completion"


class FunctionDelta(_Answer, frozen=True, omit_defaults=True):
    """A piece of a call: the name in the first, then arguments."""

    name: str | None = None
    arguments: str | UnsetType = UNSET


class ToolCallChunk(_Answer, frozen=True, omit_defaults=True):
    """A piece of a call: only the first has an ``id`` and a ``type``."""

    index: int
    function: FunctionDelta
    id: str | None = None
    type: str | None = None


class AudioChunkDelta(_Answer, frozen=True, omit_defaults=True):
    """A piece of speech: first its ``id``, then text and ``data`` (pcm16), ``expires_at`` last."""

    id: str | None = None
    transcript: str | None = None
    data: bytes | None = None
    expires_at: int | None = None


class ChunkDelta(_Answer, frozen=True):
    """What is new."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    tool_calls: Sequence[ToolCallChunk] | UnsetType = UNSET
    audio: AudioChunkDelta | UnsetType = UNSET


class ChunkChoice(_Answer, frozen=True):
    """A piece of the one answer."""

    delta: ChunkDelta
    finish_reason: FinishReason | None = None
    index: int = 0
    logprobs: None = None


class ChatCompletionChunk(_Answer, frozen=True):
    """A piece of an answer. ``usage`` is there where it was asked for, and null but in the last."""

    id: str
    created: int
    model: str
    choices: Sequence[ChunkChoice]
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    usage: CompletionUsage | UnsetType | None = UNSET
