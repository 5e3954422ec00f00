"""From the pieces of a chat completion to the outputs of a stage."""

from __future__ import annotations

from typing import Any

from duologue.engines.payloads import (
    ChatMessage,
    ChatRequest,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.engines.runners.llm.answer_reader import AnswerOutput, AnswerReader
from duologue.engines.runners.llm.chat_chunk import chunk_from

TOOLS = Tools((ToolSpec("look"),))
CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'


def read(*pieces: dict[str, Any], tools: Tools = TOOLS, schema: str = "") -> list[AnswerOutput]:
    hi = (ChatMessage("user", "Hi"),)
    reader = AnswerReader(ChatRequest(hi, max_tokens=9, tools=tools, schema=schema))
    outputs = [output for piece in pieces for output in reader.feed(chunk_from(piece))]
    outputs += reader.finish()
    return outputs


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields}]}


def test_calls_in_fields_of_their_own_come_piece_by_piece() -> None:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look"}}
    more = {"index": 0, "function": {"arguments": '{"at":'}}
    second = {"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}}
    assert read(
        delta(content="One."), delta(tool_calls=[first]), delta(tool_calls=[more, second])
    ) == [
        TextDelta("One."),
        ToolCallDelta(0, "c1", "look", ""),
        ToolCallDelta(0, "", "", '{"at":'),
        ToolCallDelta(1, "c2", "look", "{}"),
    ]


def test_calls_in_the_text_are_found() -> None:
    assert read(delta(content=CALL[:20]), delta(content=CALL[20:])) == [
        ToolCallDelta(0, name="look", arguments="{}")
    ]


def test_an_object_that_was_asked_for_is_no_call() -> None:
    text = '{"name": "look", "arguments": {}}'
    assert read(delta(content=text), schema="{}") == [TextDelta(text)]
    assert read(delta(content=text), tools=Tools()) == [TextDelta(text)]


def test_the_usage_comes_last_and_says_whether_the_answer_was_cut() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}
    cut = {"choices": [{"delta": {"content": "a <"}, "finish_reason": "length"}]}
    assert read(cut, usage) == [TextDelta("a"), TextDelta(" <"), TokenUsage(3, 9, cut=True)]
    assert read(cut)[-1] == TokenUsage(0, 0, cut=True)
    assert read(delta(content="a"), usage)[-1] == TokenUsage(3, 9)


def test_what_was_written_is_kept_as_it_was() -> None:
    reader = AnswerReader(ChatRequest((ChatMessage("user", "Hi"),), max_tokens=9, tools=TOOLS))
    list(reader.feed(chunk_from(delta(content=CALL))))
    assert reader.written == [CALL]


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    pieces = [
        {"index": 0, "id": name, "function": {"name": "look", "arguments": "{}"}}
        for name in ("c1", "c2")
    ]
    assert read(*(delta(tool_calls=[piece]) for piece in pieces)) == [
        ToolCallDelta(0, "c1", "look", "{}"),
        ToolCallDelta(1, "c2", "look", "{}"),
    ]
