"""C61 to C64 and C06: functions that the client runs while people talk."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import EndResponse, ResponseRequested
from duologue.duplex_plugins.scripted import create
from duologue.engines.payloads import (
    AudioChunk,
    SpeakText,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from duologue.protocol.commands import (
    CancelResponse,
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
    UpdateSession,
)
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    ItemAdded,
    ItemDeleted,
    RateLimitsUpdated,
    SpeechStarted,
)
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputImage,
    InputText,
    ItemReference,
    MessageItem,
    OutputText,
    ResponseInput,
)
from duologue.protocol.response_events import (
    FunctionCallArgumentsDone,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.protocol.session_config import FunctionChoice, FunctionTool
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import BY_HAND, DETECTING, RATE_HZ, READS, Talk, pcm, speech
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE

LOOK = FunctionTool(name="look", parameters={"type": "object"})
GO = FunctionTool(name="go")


def talk_with_tools(
    pipelines: tuple[str, ...] = BY_HAND, settings: SessionSettings | None = None
) -> Talk:
    talk = Talk(pipelines, READS, settings=settings)
    talk.send(UpdateSession(session=SessionPatch(tools=(LOOK, GO))))
    return talk


def call(talk: Talk, *names: str) -> list[str]:
    """Let the newest answer call functions and end; returns the call ids."""
    before = len(talk.client.of(FunctionCallArgumentsDone))
    for number, name in enumerate(names):
        piece = ToolCallDelta(number, name=name, arguments=f'{{"n":{number}}}')
        talk.engine.output(talk.stage().request.id, piece)
    talk.finish()
    talk.play_to_the_end()
    return [event.call_id for event in talk.client.of(FunctionCallArgumentsDone)[before:]]


def output(call_id: str, text: str, event_id: str | None = None) -> CreateItem:
    return CreateItem(event_id=event_id, item=FunctionCallOutputItem(call_id=call_id, output=text))


def roles(request: ResponseRequested) -> list[str]:
    """What the prompt holds: ``call look``, ``look: its output``, or role and text."""
    names = {view.call.call_id: view.call.name for view in request.conversation if view.call}
    shown: list[str] = []
    for view in request.conversation:
        if view.call is not None:
            shown.append(f"call {view.call.name}")
        elif view.role == "tool":
            shown.append(f"{names[view.call_id]}: {view.text}")
        else:
            shown.append(f"{view.role}: {view.text}")
    return shown


def question(talk: Talk, text: str) -> None:
    talk.send(speech(600), CommitAudio())
    talk.transcribe(text)
    talk.send(CreateResponse())


def test_c61_two_calls_at_once_and_a_request_after_each_output() -> None:
    talk = talk_with_tools()
    question(talk, "look and go")
    first, second = call(talk, "look", "go")
    assert talk.done() == [("completed", None)]
    output_items = talk.client.last(ResponseDone).response.output
    assert [item.status for item in output_items] == ["completed", "completed"]
    talk.clock.advance(0.1)
    talk.send(output(second, "gone"), CreateResponse(event_id="e1"))
    assert roles(talk.plugin.of(ResponseRequested)[-1])[1:] == [
        "call look",
        "look: None",
        "call go",
        "go: gone",
    ]
    talk.clock.advance(0.8)
    talk.send(output(first, "seen"), CreateResponse(event_id="e2"))
    body = talk.client.error().error
    assert (body.code, body.event_id) == ("conversation_already_has_active_response", "e2")
    talk.answer("both done", 300)
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("completed", None)] * 2
    talk.send(CreateResponse())
    assert roles(talk.plugin.of(ResponseRequested)[-1])[1:] == [
        "call look",
        "call go",
        "look: seen",
        "go: gone",
        "assistant: both done",
    ]
    talk.finish()
    talk.probe()
    talk.close()


def test_c61_an_output_starts_no_answer() -> None:
    talk = talk_with_tools()
    question(talk, "look")
    (call_id,) = call(talk, "look")
    talk.send(output(call_id, "seen"))
    talk.clock.advance(10)
    assert len(talk.created()) == 1
    talk.probe()
    talk.close()


def test_c62_the_person_interrupts_when_the_output_has_just_come() -> None:
    talk = talk_with_tools(DETECTING)
    talk.turn()
    talk.transcribe("look")
    (call_id,) = call(talk, "look")
    talk.send(output(call_id, "seen"), CreateResponse())
    talk.say(12)
    assert talk.done()[-1] == ("cancelled", "turn_detected")
    talk.hush(20)
    talk.transcribe("what is the time?")
    assert roles(talk.plugin.of(ResponseRequested)[-1]) == [
        "user: look",
        "call look",
        "look: seen",
        "user: None",
    ]
    talk.answer("noon", 300)
    talk.finish()
    assert len(talk.client.of(FunctionCallArgumentsDone)) == 1
    talk.close()


def test_c64_a_slow_function_holds_up_nobody() -> None:
    talk = talk_with_tools(DETECTING)
    talk.turn()
    talk.transcribe("look")
    (call_id,) = call(talk, "look")
    for number in range(2):
        talk.turn(47, 28)
        talk.transcribe(f"and {number}?")
        asked = talk.plugin.of(ResponseRequested)[-1]
        assert roles(asked)[:3] == ["user: look", "call look", "look: None"]
        response = talk.answer("one two three four five six seven eight", 8000)
        talk.clock.advance(2)
        talk.say(12)
        talk.client.wire.interrupted(response)
        talk.hush(20)
        talk.transcribe("never mind")
        talk.answer("fine", 300)
        talk.finish()
        talk.play_to_the_end()
    assert len(talk.client.of(SpeechStarted)) == 5
    assert len(talk.client.of(AudioCommitted)) == 5
    assert talk.client.of(ErrorEvent) == []
    talk.send(output(call_id, "seen at last"), CreateResponse())
    # The output stands where it arrived, with its call right before it.
    assert roles(talk.plugin.of(ResponseRequested)[-1])[-2:] == ["call look", "look: seen at last"]
    response = talk.answer("I see", 300)
    talk.finish()
    talk.play_to_the_end()
    assert talk.audio_of(response) == pcm(300)
    assert talk.done()[-1] == ("completed", None)
    talk.close()


def test_an_interruption_keeps_a_call_that_the_client_has_begun_to_run() -> None:
    talk = talk_with_tools()
    question(talk, "look")
    stage = talk.stage().request.id
    talk.engine.output(stage, ToolCallDelta(0, name="look", arguments="{}"))
    talk.send(CancelResponse())
    assert talk.done() == [("cancelled", "client_cancelled")]
    (item,) = talk.client.last(ResponseDone).response.output
    assert isinstance(item, FunctionCallItem)
    assert item.status == "completed"
    talk.send(output(item.call_id, "seen"), CreateResponse())
    assert roles(talk.plugin.of(ResponseRequested)[-1]) == [
        "user: look",
        "call look",
        "look: seen",
    ]
    talk.finish()
    talk.close()


def test_an_output_without_a_call_or_a_second_one_is_an_error() -> None:
    talk = talk_with_tools()
    question(talk, "look")
    (call_id,) = call(talk, "look")
    size = len(talk.machine.history)
    talk.send(output("call_unknown", "x", "e1"), output(call_id, "seen"))
    talk.send(output(call_id, "again", "e2"))
    errors = [(e.error.code, e.error.event_id, e.error.param) for e in talk.client.of(ErrorEvent)]
    assert errors == [
        ("tool_call_not_found", "e1", "item.call_id"),
        ("tool_call_already_answered", "e2", "item.call_id"),
    ]
    assert len(talk.machine.history) == size + 1
    talk.probe()
    talk.close()


def test_c60_functions_work_in_a_conversation_that_is_full_and_pairs_go_together() -> None:
    talk = talk_with_tools(settings=SessionSettings(max_items=20, max_duration_s=20_000))
    for number in range(60):
        question(talk, f"look {number}")
        (call_id,) = call(talk, "look")
        talk.send(output(call_id, f"seen {number}"), CreateResponse())
        request = roles(talk.plugin.of(ResponseRequested)[-1])
        assert request[-3:] == [f"user: look {number}", "call look", f"look: seen {number}"]
        assert request.count("call look") == sum(role.startswith("look: ") for role in request)
        talk.answer(f"answer {number}", 200)
        talk.finish()
        talk.clock.advance(72)
    assert talk.client.of(ErrorEvent) == []
    assert len(talk.machine.history) <= 20
    gone = [event.item_id for event in talk.client.of(ItemDeleted)]
    added = [event.item for event in talk.client.of(ItemAdded)]
    calls = {item.call_id: item.id for item in added if isinstance(item, FunctionCallItem)}
    outputs = {item.call_id: item.id for item in added if isinstance(item, FunctionCallOutputItem)}
    assert {id_ for id_, item in calls.items() if item in gone} == {
        id_ for id_, item in outputs.items() if item in gone
    }
    talk.probe()
    talk.close()


def test_in_a_full_conversation_an_output_that_is_refused_costs_nothing() -> None:
    talk = talk_with_tools(settings=SessionSettings(max_items=3))
    question(talk, "look")
    (call_id,) = call(talk, "look")
    question(talk, "look again")
    call(talk, "look")
    before = talk.machine.history.view()
    talk.send(output("nobody", "x"))
    bad_place = CreateItem(
        previous_item_id="nowhere", item=FunctionCallOutputItem(call_id=call_id, output="x")
    )
    talk.send(bad_place)
    assert len(talk.client.of(ErrorEvent)) == 2
    assert talk.machine.history.view() == before
    first = talk.client.of(ItemAdded)[-2].item.id
    talk.send(
        CreateItem(previous_item_id=first, item=FunctionCallOutputItem(call_id=call_id, output="x"))
    )
    assert len(talk.client.of(ErrorEvent)) == 2
    talk.close()


@pytest.mark.parametrize(
    ("params", "choice", "only"),
    [
        (ResponseParams(), "auto", ""),
        (ResponseParams(tool_choice="none"), "none", ""),
        (ResponseParams(tool_choice="required"), "required", ""),
        (ResponseParams(tool_choice=FunctionChoice(name="go")), "required", "go"),
    ],
)
def test_the_model_is_told_what_it_may_call(params: ResponseParams, choice: str, only: str) -> None:
    talk = talk_with_tools()
    talk.send(CreateResponse(response=params))
    tools = talk.plugin.of(ResponseRequested)[-1].config.tools
    assert (tools.choice, tools.only) == (choice, only)
    assert [function.name for function in tools.functions] == ["look", "go"]
    assert tools.functions[0].parameters == '{"type":"object"}'
    talk.send(CancelResponse())
    talk.close()


def test_functions_of_one_response_are_its_own() -> None:
    talk = talk_with_tools()
    fly = FunctionTool(name="fly")
    talk.send(CreateResponse(response=ResponseParams(tools=(fly,))))
    call(talk, "fly")
    assert talk.done() == [("completed", None)]
    unknown = ResponseParams(tools=(fly,), tool_choice=FunctionChoice(name="look"))
    talk.send(CreateResponse(event_id="e1", response=unknown))
    error = talk.client.error().error
    assert (error.code, error.param) == ("invalid_value", "response.tool_choice.name")
    talk.probe()
    assert [
        len(request.config.tools.functions) for request in talk.plugin.of(ResponseRequested)
    ] == [1, 2]
    talk.close()


def test_an_answer_in_words_where_a_call_is_required_has_failed() -> None:
    talk = talk_with_tools()
    talk.send(CreateResponse(response=ResponseParams(tool_choice="required")))
    talk.answer("no", 200)
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("failed", "tool_call_missing")]
    details = talk.client.last(ResponseDone).response.status_details
    assert details is not None
    assert details.error is not None
    assert "tool_choice requires it" in details.error.message
    talk.probe()
    talk.close()


def test_a_model_that_calls_what_it_may_not_ends_the_session_as_our_fault() -> None:
    talk = talk_with_tools()
    talk.send(CreateResponse(response=ResponseParams(tool_choice="none")))
    talk.engine.output(talk.stage().request.id, ToolCallDelta(0, name="look"))
    assert talk.client.ended == "plugin_error"


def test_c06_an_answer_out_of_band_may_be_given_calls_outputs_and_references() -> None:
    talk = talk_with_tools()
    asked = MessageItem(id="asked", role="user", content=(InputText(text="look"),))
    talk.send(CreateItem(item=asked))
    given: tuple[ResponseInput, ...] = (
        ItemReference(id="asked"),
        FunctionCallItem(name="look", call_id="c1", arguments="{}"),
        FunctionCallOutputItem(call_id="c1", output="seen"),
    )
    params = ResponseParams(
        conversation="none", input=given, output_modalities=("text",), metadata={"for": "me"}
    )
    talk.send(CreateResponse(response=params))
    request = talk.plugin.of(ResponseRequested)[-1]
    assert roles(request) == ["user: look", "call look", "look: seen"]
    assert request.out_of_band
    (call_id,) = call(talk, "go")
    done = talk.client.last(ResponseDone).response
    assert (done.conversation_id, done.metadata) == (None, {"for": "me"})
    assert [item.id for item in done.output] == [talk.client.last(OutputItemDone).item.id]
    # The call is no part of the conversation, so its output cannot be either.
    assert [event.item.id for event in talk.client.of(ItemAdded)] == ["asked"]
    talk.send(output(call_id, "gone", "e1"))
    assert talk.client.error().error.code == "tool_call_not_found"
    talk.probe()
    talk.close()


def test_a_picture_is_refused_where_the_model_does_not_see() -> None:
    talk = Talk()
    picture = InputImage(image_url="data:image/png;base64,AA==")
    item = MessageItem(role="user", content=(picture,))
    talk.send(CreateItem(event_id="e1", item=item))
    talk.send(CreateResponse(event_id="e2", response=ResponseParams(input=(item,))))
    errors = [(e.error.code, e.error.event_id, e.error.param) for e in talk.client.of(ErrorEvent)]
    assert errors == [
        ("unsupported", "e1", "item.content[0]"),
        ("unsupported", "e2", "response.input[0].content[0]"),
    ]
    talk.probe()
    talk.close()


def test_a_written_answer_is_text_to_its_end_and_costs_are_in_the_shape_of_ga() -> None:
    talk = Talk()
    params = ResponseParams(output_modalities=("text",), max_output_tokens=7)
    talk.send(CreateResponse(response=params))
    talk.engine.output(talk.stage().request.id, TextDelta("Well, "))
    talk.engine.output(talk.stage().request.id, TextDelta("hello."))
    usage = TokenUsage(20, 7, 5, 8, 0, 2)
    talk.plugin.then(EndResponse(talk.created()[-1], usage=usage))
    talk.send(UpdateSession(session=SessionPatch()))
    assert talk.client.last(TextDone).text == "Well, hello."
    done = talk.client.last(ResponseDone).response
    assert done.output[0].content == (OutputText(text="Well, hello."),)  # type: ignore[union-attr]
    assert done.output_modalities == ("text",)
    assert done.max_output_tokens == 7
    assert done.usage is not None
    assert done.usage.total_tokens == 27
    assert done.usage.input_token_details.audio_tokens == 8
    assert done.usage.input_token_details.cached_tokens_details.audio_tokens == 2
    created = talk.client.of(ResponseCreated)[-1].response
    assert (created.usage, created.output) == (None, ())
    assert len(talk.client.of(RateLimitsUpdated)) == 1
    assert len(talk.engine.of(STAGE)) == 1
    talk.close()


def test_a_script_calls_functions_so_that_clients_can_be_tested_without_a_model() -> None:
    weather = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
    turns = [{"line": "One moment.", "calls": [weather]}, {"line": "It is {outputs}."}]
    call_ = FakeCall(create({"turns": turns}), FakeEngine(pipelines=("scripted",)))
    tools = (FunctionTool(name="get_weather"),)
    call_.send(UpdateSession(session=SessionPatch(tools=tools)), CreateResponse())
    call_.engine.output(call_.engine.of("scripted")[-1].request.id, AudioChunk(pcm(300), RATE_HZ))
    call_.engine.complete(call_.engine.of("scripted")[-1].request.id)
    call_.clock.advance(5)
    said, asked = call_.client.last(ResponseDone).response.output
    assert isinstance(said, MessageItem)
    assert isinstance(asked, FunctionCallItem)
    assert (asked.name, asked.arguments) == ("get_weather", '{"city":"Paris"}')
    call_.send(output(asked.call_id, "sunny"), CreateResponse())
    (line,) = call_.engine.of("scripted")[-1].inputs
    assert line == SpeakText("It is sunny.", 12)
