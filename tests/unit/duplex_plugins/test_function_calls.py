from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import CallFunction, EndResponse, ResponseOutcome
from duologue.duplex_plugins.function_calls import BAD_CALL, LENGTH_LIMIT, FunctionCalls
from duologue.engines.payloads import NO_TOOLS, TokenUsage, ToolCallDelta, Tools, ToolSpec

LOOK = Tools((ToolSpec("look"), ToolSpec("say")))
CUT = TokenUsage(1, 5, cut=True)


def ended(
    *pieces: ToolCallDelta, tools: Tools = LOOK, usage: TokenUsage | None = None
) -> list[object]:
    calls = FunctionCalls()
    for piece in pieces:
        calls.add(piece)
    return list(calls.end("r", tools, usage, 10))


def test_an_answer_without_calls_just_ends() -> None:
    usage = TokenUsage(1, 9)
    assert ended(usage=usage) == [EndResponse("r", usage=usage)]
    assert ended() == [EndResponse("r")]


def test_calls_are_made_whole_and_in_order() -> None:
    effects = ended(
        ToolCallDelta(0, name="look", arguments='{"at":'),
        ToolCallDelta(0, arguments="1}"),
        ToolCallDelta(1, name="say"),
    )
    assert effects == [
        CallFunction("r", "0", "look", '{"at":1}'),
        CallFunction("r", "1", "say", "{}"),
        EndResponse("r"),
    ]


def test_where_one_at_most_may_be_called_the_first_is() -> None:
    one = Tools(LOOK.functions, parallel=False)
    effects = ended(ToolCallDelta(0, name="look"), ToolCallDelta(1, name="say"), tools=one)
    assert effects == [CallFunction("r", "0", "look", "{}"), EndResponse("r")]


@pytest.mark.parametrize(("name", "arguments"), [("sing", ""), ("look", "["), ("look", "[]")])
def test_a_call_that_nobody_can_make_fails_the_answer(name: str, arguments: str) -> None:
    assert ended(ToolCallDelta(0, name=name, arguments=arguments)) == [
        EndResponse("r", ResponseOutcome.FAILED, BAD_CALL)
    ]


@pytest.mark.parametrize("usage", [CUT, TokenUsage(1, 10)])
def test_of_an_answer_that_was_cut_the_whole_calls_are_made(usage: TokenUsage) -> None:
    effects = ended(
        ToolCallDelta(0, name="look"), ToolCallDelta(1, name="say", arguments="{"), usage=usage
    )
    assert effects == [
        CallFunction("r", "0", "look", "{}"),
        EndResponse("r", ResponseOutcome.INCOMPLETE, LENGTH_LIMIT, usage),
    ]


def test_where_nothing_may_be_called_nothing_is() -> None:
    assert ended(ToolCallDelta(0, name="look"), tools=NO_TOOLS) == [EndResponse("r")]
