from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.clients.effects import Send
from duologue.clients.tools.calls import MAX_RUNNING, RunTool, ToolCalls, ToolEffect
from duologue.protocol.commands import CreateItem, CreateResponse
from duologue.protocol.events import ErrorEvent, ItemAdded, SessionCreated, SessionUpdated
from duologue.protocol.items import FunctionCallItem, FunctionCallOutputItem, ItemStatus
from duologue.protocol.response_events import OutputItemDone, ResponseCreated, ResponseDone
from duologue.protocol.response_resource import ResponseStatus
from duologue.protocol.session_config import FunctionTool, SessionConfig, to_wire
from tests.fakes.server import FakeAnswer, refusal, speech_started, speech_stopped


def numbered() -> object:
    counts: dict[str, int] = {}

    def new_id(prefix: str) -> str:
        counts[prefix] = counts.get(prefix, 0) + 1
        return f"{prefix}_{counts[prefix]}"

    return new_id


def created(name: str, conversation_id: str | None = "conv") -> ResponseCreated:
    resource = FakeAnswer(name).resource("in_progress")
    return ResponseCreated(response=_in(resource, conversation_id))


def done(name: str, status: ResponseStatus = "completed") -> ResponseDone:
    return ResponseDone(response=_in(FakeAnswer(name).resource(status), "conv"))


def _in(resource: object, conversation_id: str | None) -> object:
    import msgspec

    return msgspec.structs.replace(resource, conversation_id=conversation_id)  # type: ignore[type-var]


def called(
    response: str, call_id: str, name: str = "look", status: ItemStatus = "completed"
) -> OutputItemDone:
    item = FunctionCallItem(
        id=f"item_{call_id}", name=name, call_id=call_id, arguments="{}", status=status
    )
    return OutputItemDone(response_id=f"resp_{response}", output_index=0, item=item)


class Scene:
    """The calls of a conversation, and what they wanted."""

    def __init__(self, *names: str) -> None:
        self.calls = ToolCalls(names or ("look", "go"), numbered())  # type: ignore[arg-type]
        self.effects: list[ToolEffect] = []

    def hear(self, *events: object) -> Scene:
        for event in events:
            self.note(self.calls.on_event(event))  # type: ignore[arg-type]
        return self

    def finish(self, call_id: str, output: str = "seen") -> Scene:
        self.note(self.calls.finished(call_id, output))
        return self

    def note(self, effects: Sequence[ToolEffect]) -> None:
        self.effects += effects

    def arrive(self) -> Scene:
        """The server has every output that was sent."""
        for item in self.outputs:
            self.hear(ItemAdded(previous_item_id=None, item=item))
        return self

    @property
    def started(self) -> list[str]:
        return [effect.call_id for effect in self.effects if isinstance(effect, RunTool)]

    @property
    def outputs(self) -> list[FunctionCallOutputItem]:
        return [
            effect.command.item
            for effect in self.effects
            if isinstance(effect, Send) and isinstance(effect.command, CreateItem)
        ]  # type: ignore[misc]

    @property
    def asked(self) -> list[str | None]:
        return [
            effect.command.event_id
            for effect in self.effects
            if isinstance(effect, Send) and isinstance(effect.command, CreateResponse)
        ]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_c61_two_calls_are_answered_by_one_request_after_the_last_output(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), called("a", "c2"), done("a"))
    assert scene.started == ["c1", "c2"]
    scene.finish("c2", "gone")
    assert scene.asked == []
    scene.finish("c1", "seen")
    assert [(item.call_id, item.output) for item in scene.outputs] == [
        ("c2", "gone"),
        ("c1", "seen"),
    ]
    assert len(scene.asked) == 1
    scene.arrive().hear(created("b"), done("b"))
    assert len(scene.asked) == 1


def test_an_output_that_is_there_before_its_response_has_ended_waits_for_the_end(
    scene: Scene,
) -> None:
    scene.hear(created("a"), called("a", "c1")).finish("c1")
    assert scene.asked == []
    scene.hear(done("a"))
    assert len(scene.asked) == 1


def test_c62_an_answer_that_begins_after_the_output_arrived_needs_no_other(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a"), speech_started("item_q"))
    scene.finish("c1").arrive()
    assert scene.asked == []
    scene.hear(speech_stopped("item_q"))
    # The request and the server's own answer cross on the way.
    assert len(scene.asked) == 1
    scene.hear(created("b"), refusal(scene.asked[0], "conversation_already_has_active_response"))
    scene.hear(done("b"))
    assert len(scene.asked) == 1
    assert scene.started == ["c1"]


def test_c64_a_late_output_waits_until_nobody_speaks(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a"))
    scene.hear(speech_started("item_q"), speech_stopped("item_q"), created("b"))
    scene.finish("c1").arrive()
    assert scene.asked == []
    scene.hear(speech_started("item_r"), done("b", "cancelled"))
    assert scene.asked == []
    scene.hear(speech_stopped("item_r"))
    assert len(scene.asked) == 1


def test_a_request_that_crosses_an_answer_without_the_output_is_made_again(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a")).finish("c1")
    scene.hear(created("b")).arrive()
    scene.hear(refusal(scene.asked[0], "conversation_already_has_active_response"))
    assert len(scene.asked) == 1
    scene.hear(done("b"))
    assert len(scene.asked) == 2


def test_a_request_that_is_refused_for_another_reason_is_not_made_again(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a")).finish("c1")
    scene.hear(refusal(scene.asked[0], "rate_limited"))
    scene.hear(created("b"), done("b"))
    assert len(scene.asked) == 1


def test_an_output_whose_call_is_gone_is_not_asked_for(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1")).finish("c1")
    command = scene.effects[-1]
    assert isinstance(command, Send)
    scene.hear(refusal(command.command.event_id, "tool_call_not_found"), done("a"))
    assert scene.asked == []


def test_a_result_after_the_output_is_dropped(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a")).finish("c1", "too late")
    assert not scene.calls.is_running("c1")
    scene.finish("c1", "late")
    assert [item.output for item in scene.outputs] == ["too late"]


def test_a_call_is_run_once_and_only_when_it_is_whole(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1", status="incomplete"))
    scene.hear(called("a", "c2"), called("a", "c2"))
    assert scene.started == ["c2"]


def test_a_function_that_there_is_not_is_answered_with_those_that_there_are(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1", "fly"), done("a"))
    assert scene.started == []
    assert scene.outputs[0].output == ('{"error":"there is no function fly; there are: go, look"}')
    assert len(scene.asked) == 1


@pytest.mark.parametrize("kind", [SessionCreated, SessionUpdated])
def test_what_the_program_offers_by_itself_it_answers_by_itself(
    scene: Scene, kind: type[SessionCreated]
) -> None:
    config = SessionConfig(tools=(FunctionTool(name="fly"),))
    scene.hear(kind(session=to_wire(config, "sess", "model", 0)))
    scene.hear(created("a"), called("a", "c1", "fly"), done("a"))
    assert scene.effects == []
    assert not scene.calls.answers("fly")


def test_more_calls_than_may_run_are_refused(scene: Scene) -> None:
    scene.hear(created("a"), *(called("a", f"c{n}") for n in range(MAX_RUNNING + 1)), done("a"))
    assert scene.calls.running == MAX_RUNNING
    assert "running already" in scene.outputs[0].output


def test_an_answer_outside_of_the_conversation_sees_no_outputs(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a"), speech_started("q"))
    scene.finish("c1").arrive()
    scene.hear(created("b", None), speech_stopped("q"))
    assert scene.asked == []
    scene.hear(done("b"))
    assert len(scene.asked) == 1


def test_a_request_that_crosses_an_answer_outside_of_the_conversation_is_made_again(
    scene: Scene,
) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a")).finish("c1").arrive()
    scene.hear(created("b", None))
    scene.hear(refusal(scene.asked[0], "conversation_already_has_active_response"))
    assert len(scene.asked) == 1
    scene.hear(done("b"))
    assert len(scene.asked) == 2


def test_a_call_that_comes_behind_the_end_of_its_response_is_answered(scene: Scene) -> None:
    scene.hear(created("a"), done("a"), called("a", "c1")).finish("c1")
    assert len(scene.asked) == 1


class Conversation(RuleBasedStateMachine):
    """Whatever the order: each call has one output, and in the end an answer has seen them all.

    The server is honest: it has one answer at a time, and refuses a request while there is one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene()
        self.answers = 0
        self.active: str | None = None
        self.calls: list[str] = []
        self.running: list[str] = []
        self.arrived: set[str] = set()
        self.seen: set[str] = set()
        self.done_effects = 0

    def serve(self) -> None:
        """Carry out what the client sent, in order."""
        while self.done_effects < len(self.scene.effects):
            effect = self.scene.effects[self.done_effects]
            self.done_effects += 1
            if isinstance(effect, RunTool):
                self.running.append(effect.call_id)
            elif isinstance(effect.command, CreateItem):
                item = effect.command.item
                assert isinstance(item, FunctionCallOutputItem)
                assert item.call_id not in self.arrived
                self.arrived.add(item.call_id)
                self.scene.hear(ItemAdded(previous_item_id=None, item=item))
            elif self.active is not None:
                code = "conversation_already_has_active_response"
                self.scene.hear(refusal(effect.command.event_id, code))
            else:
                self.begin()

    def begin(self) -> None:
        self.answers += 1
        self.active = f"r{self.answers}"
        self.seen |= self.arrived
        self.scene.hear(created(self.active))

    @precondition(lambda self: self.active is None)
    @rule()
    def the_server_answers(self) -> None:
        self.begin()

    @precondition(lambda self: self.active is not None and len(self.calls) < 40)
    @rule(name=st.sampled_from(["look", "go", "fly"]))
    def the_model_calls(self, name: str) -> None:
        call_id = f"c{len(self.calls)}"
        self.calls.append(call_id)
        assert self.active is not None
        self.scene.hear(called(self.active, call_id, name))

    @precondition(lambda self: self.active is not None)
    @rule(status=st.sampled_from(["completed", "cancelled", "failed"]))
    def the_answer_ends(self, status: ResponseStatus) -> None:
        assert self.active is not None
        ended, self.active = self.active, None
        self.scene.hear(done(ended, status))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_function_returns(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(self.running))
        self.running.remove(call_id)
        self.scene.finish(call_id).finish(call_id)

    @rule()
    def the_server_works(self) -> None:
        self.serve()

    @rule(speaks=st.booleans())
    def the_person_speaks_or_stops(self, speaks: bool) -> None:
        self.scene.hear(speech_started("q") if speaks else speech_stopped("q"))

    @invariant()
    def each_call_has_one_output_at_most(self) -> None:
        named = [item.call_id for item in self.scene.outputs]
        assert len(named) == len(set(named))

    def teardown(self) -> None:
        self.scene.hear(speech_stopped("q"))
        for _ in range(100):
            self.serve()
            if self.running:
                self.scene.finish(self.running.pop())
            elif self.active is not None:
                self.the_answer_ends("completed")
            elif self.done_effects == len(self.scene.effects):
                break
        assert set(self.calls) == self.arrived == self.seen
        assert self.scene.calls.running == 0


TestConversation = Conversation.TestCase


def test_an_error_of_something_else_changes_nothing(scene: Scene) -> None:
    scene.hear(created("a"), called("a", "c1"), done("a")).finish("c1")
    other = refusal("client_7")
    assert isinstance(other, ErrorEvent)
    scene.hear(other, refusal(None))
    assert len(scene.asked) == 1
