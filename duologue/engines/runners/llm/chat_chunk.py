"""A piece of a streamed chat completion, as OpenAI-compatible servers send it.

Only what is read is declared; all else is ignored. This module must not know how pieces travel.
"""

from __future__ import annotations

from typing import Any

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import (
    ChatMessage,
    ChatRequest,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    Tools,
    ToolSpec,
)

CONTEXT_EXCEEDED = "context_length_exceeded"
REQUEST_REFUSED = "request_refused"
"""The model can do nothing with what was asked, as an answer in a form that is none."""

_CONTEXT_ERRORS = frozenset((CONTEXT_EXCEEDED, "exceed_context_size_error"))
_LONGEST_MESSAGE_CHARS = 300


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _CallPiece(msgspec.Struct):
    """The first piece of a call has id and name; later ones only more of the arguments."""

    index: int | None = None
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


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

    def calls(self) -> list[ToolCallDelta]:
        """Return the pieces of function calls in it."""
        return [
            ToolCallDelta(
                # Some servers leave out the index of the only call.
                piece.index or 0,
                piece.id or "",
                piece.function.name or "",
                piece.function.arguments or "",
            )
            for choice in self.choices
            for piece in choice.delta.tool_calls or ()
        ]

    @property
    def cut(self) -> bool:
        """The model was allowed to write no more."""
        return any(choice.finish_reason == "length" for choice in self.choices)

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
            return EngineError(
                f"{whose} reports an error", quote=self.error[:_LONGEST_MESSAGE_CHARS]
            )
        is_too_long = _CONTEXT_ERRORS.intersection((self.error.type, self.error.code))
        is_refused = self.error.type == "invalid_request_error"
        return EngineError(
            f"{whose} reports an error",
            code=CONTEXT_EXCEEDED if is_too_long else REQUEST_REFUSED if is_refused else None,
            quote=self.error.message[:_LONGEST_MESSAGE_CHARS],
        )


class ChatBody(msgspec.Struct, omit_defaults=True):
    """What is asked of a server. A default is left out, so that old servers understand it."""

    messages: list[dict[str, Any]]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    model: str | None = None
    temperature: float | None = None
    seed: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool = False
    stream_options: dict[str, bool] | None = None


def chat_body(request: ChatRequest) -> ChatBody:
    """Return a streaming request for ``request``."""
    functions = request.tools.functions
    return ChatBody(
        messages=[_message(message) for message in request.messages],
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed if request.temperature else None,
        top_p=request.top_p if request.top_p < 1 else None,
        stop=request.stop or None,
        response_format=_response_format(request.schema),
        tools=[_tool(spec) for spec in functions] or None,
        tool_choice=_tool_choice(request.tools) if functions else None,
        parallel_tool_calls=False if functions and not request.tools.parallel else None,
        stream=True,
        stream_options={"include_usage": True},
    )


def _message(message: ChatMessage) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        text = [{"type": "text", "text": message.content}] if message.content else []
        pictures = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
        body["content"] = [*text, *pictures]
    if message.calls:
        body["tool_calls"] = [_call(call) for call in message.calls]
    if message.role == "tool":
        body["tool_call_id"] = message.call_id
    return body


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": spec.name}
    if spec.description:
        function["description"] = spec.description
    function["parameters"] = msgspec.json.decode(spec.parameters)
    return {"type": "function", "function": function}


def _tool_choice(tools: Tools) -> str | dict[str, Any]:
    if tools.only:
        return {"type": "function", "function": {"name": tools.only}}
    return tools.choice


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
        raise EngineError("a piece of an answer cannot be read", quote=str(exc)) from exc


def parse_chunk(raw: bytes) -> ChatChunk:
    """Read a piece from JSON.

    Raises:
        EngineError: It is not JSON, or has another shape.
    """
    try:
        return msgspec.json.decode(raw, type=ChatChunk)
    except msgspec.MsgspecError as exc:
        raise EngineError("a piece of an answer cannot be read", quote=str(exc)) from exc
