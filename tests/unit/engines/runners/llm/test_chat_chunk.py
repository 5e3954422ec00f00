from __future__ import annotations

import msgspec
import pytest

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
from duologue.engines.runners.llm.chat_chunk import (
    CONTEXT_EXCEEDED,
    REQUEST_REFUSED,
    chat_body,
    chunk_from,
    parse_chunk,
)


def test_text_is_read_and_all_else_ignored() -> None:
    chunk = parse_chunk(
        b'{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}],"new":1}'
    )
    assert chunk.text == "Hi"
    assert chunk.token_usage() is None
    assert chunk.failure("it") is None


@pytest.mark.parametrize(
    "raw",
    [
        b'{"choices":[]}',
        b'{"choices":[{"delta":{}}]}',
        b'{"choices":[{"delta":{"content":null}}]}',
        b'{"choices":[{"finish_reason":"stop"}]}',
    ],
)
def test_a_piece_without_text_is_no_fault(raw: bytes) -> None:
    assert parse_chunk(raw).text == ""


def test_usage_names_what_came_from_the_cache() -> None:
    raw = {
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 12},
        },
    }
    assert chunk_from(raw).token_usage() == TokenUsage(20, 5, 12)
    raw["usage"].pop("prompt_tokens_details")
    assert chunk_from(raw).token_usage() == TokenUsage(20, 5, 0)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            {"type": "exceed_context_size_error", "message": "too long", "code": 400},
            CONTEXT_EXCEEDED,
        ),
        ({"code": "context_length_exceeded", "message": "too long"}, CONTEXT_EXCEEDED),
        ({"type": "invalid_request_error", "message": "too long"}, REQUEST_REFUSED),
        ({"message": "too long"}, "stage_failed"),
        ("too long", "stage_failed"),
    ],
)
def test_a_servers_complaint_becomes_an_error(error: object, code: str) -> None:
    failure = chunk_from({"error": error}).failure("the server")
    assert failure is not None
    assert failure.code == code
    assert failure.message == "the server reports an error"
    assert failure.quote == "too long"


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"choices":5}', b"{"])
def test_what_cannot_be_read_is_an_engine_error(raw: bytes) -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        parse_chunk(raw)


def test_a_library_that_changes_its_shape_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        chunk_from({"choices": "none"})


def test_a_greedy_request_asks_for_no_luck() -> None:
    request = ChatRequest((ChatMessage("user", "Hi"),), max_tokens=9, seed=4)
    body = msgspec.to_builtins(chat_body(request))
    assert body == {
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_seed_goes_along_where_luck_plays_a_part() -> None:
    request = ChatRequest((ChatMessage("user", "Hi"),), max_tokens=9, temperature=0.5, seed=4)
    assert chat_body(request).seed == 4


def test_the_form_of_the_answer_and_its_stops_go_along() -> None:
    hi = (ChatMessage("user", "Hi"),)
    free = chat_body(ChatRequest(hi, max_tokens=9, top_p=0.5, stop=("a", "b"), schema="{}"))
    assert (free.top_p, free.stop) == (0.5, ("a", "b"))
    assert free.response_format == {"type": "json_object"}
    bound = chat_body(ChatRequest(hi, max_tokens=9, schema='{"type":"object"}'))
    assert bound.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
    }


def test_a_server_may_leave_out_the_index_of_its_only_call() -> None:
    piece = {"choices": [{"delta": {"tool_calls": [{"function": {"name": "look"}}]}}]}
    assert chunk_from(piece).calls() == [ToolCallDelta(0, "", "look", "")]


def test_functions_go_along_as_servers_know_them() -> None:
    look = ToolSpec("look", "Looks.", '{"type":"object"}')
    request = ChatRequest((ChatMessage("user", "Hi"),), max_tokens=9, tools=Tools((look,)))
    body = chat_body(request)
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    assert body.tools == [{"type": "function", "function": function}]
    assert (body.tool_choice, body.parallel_tool_calls) == ("auto", None)
    forced = Tools((look,), "required", "look", parallel=False)
    body = chat_body(ChatRequest(request.messages, max_tokens=9, tools=forced))
    assert body.tool_choice == {"type": "function", "function": {"name": "look"}}
    assert body.parallel_tool_calls is False
    plain = chat_body(ChatRequest(request.messages, max_tokens=9))
    assert (plain.tools, plain.tool_choice) == (None, None)


def test_calls_outputs_and_pictures_of_a_conversation_go_along() -> None:
    messages = (
        ChatMessage("user", "Look!", images=("data:image/png;base64,AA==",)),
        ChatMessage("assistant", "", calls=(ToolCall("c1", "look", "{}"),)),
        ChatMessage("tool", "seen", call_id="c1"),
    )
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert chat_body(ChatRequest(messages, max_tokens=9)).messages == [
        {"role": "user", "content": [{"type": "text", "text": "Look!"}, picture]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "seen", "tool_call_id": "c1"},
    ]
