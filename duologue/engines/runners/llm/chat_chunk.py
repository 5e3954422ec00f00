"""A piece of a streamed chat completion, as OpenAI-compatible servers send it.

Only what is read is declared; all else is ignored. This module must not know how pieces travel.
"""

from __future__ import annotations

from typing import Any

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import ChatRequest, TokenUsage

CONTEXT_EXCEEDED = "context_length_exceeded"
REQUEST_REFUSED = "request_refused"
"""The model can do nothing with what was asked, as an answer in a form that is none."""

_CONTEXT_ERRORS = frozenset((CONTEXT_EXCEEDED, "exceed_context_size_error"))
_LONGEST_MESSAGE_CHARS = 300


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Error(msgspec.Struct):
    message: str = ""
    type: str | None = None
    code: str | int | None = None


class ChatChunk(msgspec.Struct):
    """One piece: text, or the usage at the end, or an error."""

    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | str | None = None

    @property
    def text(self) -> str:
        """What was written."""
        return "".join(choice.delta.content or "" for choice in self.choices)

    def token_usage(self) -> TokenUsage | None:
        """What was read and written, if this piece says so."""
        if self.usage is None:
            return None
        details = self.usage.prompt_tokens_details
        cached = details.cached_tokens if details is not None else None
        return TokenUsage(self.usage.prompt_tokens, self.usage.completion_tokens, cached or 0)

    def failure(self, whose: str) -> EngineError | None:
        """What went wrong, if something did.

        Args:
            whose: Who reports it, for the message.
        """
        if self.error is None:
            return None
        if isinstance(self.error, str):
            return EngineError(f"{whose}: {self.error[:_LONGEST_MESSAGE_CHARS]}")
        is_too_long = _CONTEXT_ERRORS.intersection((self.error.type, self.error.code))
        is_refused = self.error.type == "invalid_request_error"
        return EngineError(
            f"{whose}: {self.error.message[:_LONGEST_MESSAGE_CHARS]}",
            code=CONTEXT_EXCEEDED if is_too_long else REQUEST_REFUSED if is_refused else None,
        )


class ChatBody(msgspec.Struct, omit_defaults=True):
    """What is asked of a server. A default is left out, so that old servers understand it."""

    messages: list[dict[str, str]]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    model: str | None = None
    temperature: float | None = None
    seed: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    response_format: dict[str, Any] | None = None
    stream: bool = False
    stream_options: dict[str, bool] | None = None


def chat_body(request: ChatRequest) -> ChatBody:
    """Return a streaming request for ``request``."""
    return ChatBody(
        messages=[{"role": m.role, "content": m.content} for m in request.messages],
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed if request.temperature else None,
        top_p=request.top_p if request.top_p < 1 else None,
        stop=request.stop or None,
        response_format=_response_format(request.schema),
        stream=True,
        stream_options={"include_usage": True},
    )


def _response_format(schema: str) -> dict[str, Any] | None:
    if not schema:
        return None
    if schema == "{}":
        return {"type": "json_object"}
    wanted = {"name": "answer", "schema": msgspec.json.decode(schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


def chunk_from(raw: Any) -> ChatChunk:
    """Read a piece that a library has parsed already.

    Raises:
        EngineError: It has another shape.
    """
    try:
        return msgspec.convert(raw, ChatChunk)
    except msgspec.ValidationError as exc:
        raise EngineError(f"a piece of an answer cannot be read: {exc}") from exc


def parse_chunk(raw: bytes) -> ChatChunk:
    """Read a piece from JSON.

    Raises:
        EngineError: It is not JSON, or has another shape.
    """
    try:
        return msgspec.json.decode(raw, type=ChatChunk)
    except msgspec.MsgspecError as exc:
        raise EngineError(f"a piece of an answer cannot be read: {exc}") from exc
