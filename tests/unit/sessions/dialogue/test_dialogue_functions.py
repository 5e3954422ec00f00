"""Functions that a plugin calls, and requests that interrupt."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError, ProtocolError
from duologue.duplex_plugins.contract import (
    CallFunction,
    EndResponse,
    Interrupted,
    ItemView,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
)
from duologue.engines.payloads import ToolCall
from duologue.protocol.events import ItemTruncated
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    ItemReference,
    MessageItem,
)
from duologue.protocol.response_events import FunctionCallArgumentsDone, ResponseDone
from duologue.protocol.session_config import FunctionTool
from tests.unit.sessions.dialogue_bench import Bench, T, pcm, user

LOOK = (FunctionTool(name="look"),)
CALL = FunctionCallItem(id="c", name="look", call_id="c1", arguments="{}")
OUTPUT = FunctionCallOutputItem(id="o", call_id="c1", output="seen")


def done(bench: Bench) -> tuple[str, str | None]:
    """Status and reason of the last response that has ended."""
    response = bench.of(ResponseDone)[-1].response
    details = response.status_details
    return response.status, None if details is None else details.reason


def test_a_plugin_calls_what_it_is_offered() -> None:
    bench = Bench()
    response = bench.request(tools=LOOK)
    bench.say(CallFunction(response.id, "k", "look", "{}"), EndResponse(response.id))
    (whole,) = bench.of(FunctionCallArgumentsDone)
    assert (whole.name, whole.arguments) == ("look", "{}")
    assert done(bench) == ("completed", None)


@pytest.mark.parametrize("params", [{}, {"tools": LOOK, "tool_choice": "none"}])
def test_a_plugin_that_calls_what_it_may_not_breaks_its_contract(params: dict[str, object]) -> None:
    bench = Bench()
    response = bench.request(**params)
    with pytest.raises(PluginError, match="calls function 'look', which it may not call"):
        bench.say(CallFunction(response.id, "k", "look"))


@pytest.mark.parametrize(
    ("outcome", "reason", "expected"),
    [
        (ResponseOutcome.COMPLETED, "", ("failed", "tool_call_missing")),
        (ResponseOutcome.INCOMPLETE, "max_output_tokens", ("incomplete", "max_output_tokens")),
        (ResponseOutcome.FAILED, "stage_failed", ("failed", "stage_failed")),
    ],
)
def test_an_answer_without_the_call_that_is_required_has_not_completed(
    outcome: ResponseOutcome, reason: str, expected: tuple[str, str]
) -> None:
    bench = Bench()
    response = bench.request(tools=LOOK, tool_choice="required")
    bench.say(SayText(response.id, "No."), EndResponse(response.id, outcome, reason))
    assert done(bench) == expected


def test_a_call_that_is_required_completes_the_answer() -> None:
    bench = Bench()
    response = bench.request(tools=LOOK, tool_choice="required")
    bench.say(CallFunction(response.id, "k", "look"), EndResponse(response.id))
    assert done(bench) == ("completed", None)


def test_calls_and_outputs_may_be_the_input_of_an_answer() -> None:
    bench = Bench()
    bench.history.add(CALL)
    bench.request(input=(ItemReference(id="c"), OUTPUT))
    (requested,) = bench.plugin.of(ResponseRequested)
    assert requested.conversation == (
        ItemView(id="c", role="assistant", text="", call=ToolCall("c1", "look", "{}")),
        ItemView(id="o", role="tool", text="seen", call_id="c1"),
    )


def test_an_output_that_comes_before_its_call_is_no_input() -> None:
    bench = Bench()
    with pytest.raises(ProtocolError) as refusal:
        bench.request(input=(OUTPUT, CALL))
    assert refusal.value.param == "response.input[0].call_id"


def test_an_answer_waits_for_no_output() -> None:
    bench = Bench()
    bench.history.add(CALL)
    assert bench.request().awaits == frozenset()


def test_a_request_may_interrupt_the_answer_and_what_still_sounds_of_another() -> None:
    bench = Bench()
    first = bench.speak(3000)
    bench.dialogue.request(bench.config(interrupt=True), T + 1)
    assert done(bench) == ("cancelled", "client_cancelled")
    (cut,) = bench.of(ItemTruncated)
    assert (cut.item_id, cut.audio_end_ms) == (first.messages[0].id, 1000)
    assert len(bench.speaking.all()) == 1


def test_what_was_heard_of_all_its_messages_is_told_to_the_plugin() -> None:
    bench = Bench()
    response = bench.request(tools=LOOK)
    bench.say(
        SayText(response.id, "One."),
        SayAudio(response.id, pcm(200)),
        CallFunction(response.id, "k", "look"),
        SayText(response.id, " Two."),
        SayAudio(response.id, pcm(3000)),
    )
    bench.read()
    bench.dialogue.interrupt(T + 0.2)
    assert bench.plugin.of(Interrupted)[-1].heard == "One."
    first = bench.history.view()[0]
    second = bench.history.get(response.messages[1].id)
    assert (first.text, first.interrupted) == ("One.", False)
    assert isinstance(second.item, MessageItem)
    assert second.item.status == "incomplete"
    (cut,) = bench.of(ItemTruncated)
    assert cut.item_id == response.messages[1].id


def test_a_request_that_may_interrupt_needs_nothing_to_interrupt() -> None:
    bench = Bench()
    bench.history.add(user("a"))
    bench.request(interrupt=True)
    assert bench.plugin.prompts == [[("user", "hello")]]
    assert bench.of(ItemTruncated) == []
