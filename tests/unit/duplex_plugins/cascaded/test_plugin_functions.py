"""The model calls functions of the client, and answers with their outputs."""

from __future__ import annotations

from duologue.duplex_plugins.contract import (
    ConfigChanged,
    EndResponse,
    ItemView,
    PluginConfig,
    ResponseOutcome,
    TranscriptKind,
    TurnKind,
)
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import ToolCall, ToolCallDelta, Tools, ToolSpec
from tests.unit.duplex_plugins.cascaded.caller import Call

OFFER = Tools((ToolSpec("look"),))


def test_the_model_calls_a_function_and_answers_with_its_output() -> None:
    call = Call()
    call.config = PluginConfig(tools=OFFER)
    call.say("Look!")
    call.request()
    stage = call.llm()
    assert stage.request is not None
    assert stage.request.tools == OFFER
    call.output(stage.key, ToolCallDelta(0, "", "look", "{}"))
    call.end_stage(stage.key)
    assert call.responses["r1"].calls == [("look", "{}")]
    assert call.responses["r1"].end == EndResponse("r1")
    call.add(ItemView(id="c", role="assistant", text="", call=ToolCall("c", "look", "{}")))
    call.add(ItemView(id="o", role="tool", text="seen", call_id="c"))
    call.request("r2")
    request = call.llm().request
    assert request is not None
    assert request.messages[-1].content == "seen"
    assert request.tools.choice == "none"
    # A model that calls all the same is not obeyed.
    call.output(call.llm().key, ToolCallDelta(0, "", "look", "{}"))
    call.answer("A cat.", response_id="r2")
    assert call.responses["r2"].calls == []
    assert call.responses["r2"].text == "A cat."


def test_a_call_that_was_written_on_speculation_is_made_when_it_is_asked_for() -> None:
    call = Call()
    call.config = PluginConfig(tools=OFFER)
    call.give(ConfigChanged(call.config))
    for stage in call.running("llm"):
        call.end_stage(stage.key)
    call.pause()
    key = call.llm().key
    assert call.output(key, ToolCallDelta(0, "", "look", "{}")) == []
    call.end_stage(key)
    call.commit()
    assert call.responses["r1"].calls == [("look", "{}")]


def test_a_conversation_that_is_too_long_fails_its_answer_where_nothing_may_be_left_out() -> None:
    call = Call(prompt_tokens=300)
    call.config = PluginConfig(retention=Retention(allowed=False))
    call.give(ConfigChanged(call.config))
    for stage in call.running("llm"):
        call.end_stage(stage.key)
    call.say("x" * 5000)
    # Nothing can be begun ahead of it either.
    assert call.turn(TurnKind.STARTED) == []
    call.turn(TurnKind.PAUSING)
    assert call.transcript(TranscriptKind.SPECULATIVE, "x" * 5000) == []
    call.request()
    assert call.responses["r1"].end == EndResponse(
        "r1", ResponseOutcome.FAILED, "context_length_exceeded"
    )
