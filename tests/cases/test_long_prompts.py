"""C60 and C35 in what the engine is asked: long conversations, instructions, functions."""

from __future__ import annotations

import itertools

import pytest

from duologue.duplex_plugins.cascaded.plugin import CascadedPlugin
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.engines.payloads import ChatRequest, TextDelta, TokenUsage, ToolCallDelta
from duologue.protocol.commands import CreateItem, CreateResponse, ResponseParams, UpdateSession
from duologue.protocol.events import ErrorEvent
from duologue.protocol.items import FunctionCallOutputItem, InputText, MessageItem
from duologue.protocol.response_events import FunctionCallArgumentsDone, ResponseDone
from duologue.protocol.session_config import (
    FunctionTool,
    RetentionRatio,
    TokenLimits,
    Truncation,
)
from duologue.protocol.session_patch import SessionPatch
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine, FakeRequest

ROOM_TOKENS = 300
TURNS = 60


class Written(FakeCall):
    """A call with the cascade that is held in writing; a test is the language model."""

    def __init__(self) -> None:
        settings = CascadedSettings(
            persona="Be kind.", examples=(), prompt_tokens=ROOM_TOKENS, prefill=False
        )
        engine = FakeEngine(pipelines=("llm", "tts", "asr", "vad"))
        super().__init__(CascadedPlugin(settings), engine)
        self.set(output_modalities=("text",))

    def set(self, **patch: object) -> None:
        self.send(UpdateSession(session=SessionPatch(**patch)))  # type: ignore[arg-type]

    def ask(self, text: str) -> ChatRequest:
        """Write a question and ask for an answer; returns the prompt."""
        item = MessageItem(role="user", content=(InputText(text=text),))
        self.send(CreateItem(item=item))
        return self.wants_an_answer()

    def wants_an_answer(self, params: ResponseParams | None = None) -> ChatRequest:
        self.send(CreateResponse(response=params or ResponseParams()))
        (prompt,) = self.stage().inputs
        assert isinstance(prompt, ChatRequest)
        return prompt

    def stage(self) -> FakeRequest:
        return self.engine.of("llm")[-1]

    def answer(self, *outputs: TextDelta | ToolCallDelta | TokenUsage) -> None:
        """Let the model write something, and end."""
        stage = self.stage()
        for output in outputs:
            self.engine.output(stage.request.id, output)
        self.engine.complete(stage.request.id)

    def call_function(self) -> str:
        """Let the model call; returns the call's id."""
        self.answer(ToolCallDelta(0, name="look", arguments="{}"))
        return self.client.last(FunctionCallArgumentsDone).call_id


def words(prompt: ChatRequest) -> list[str]:
    return [message.content for message in prompt.messages]


def weight(prompt: ChatRequest) -> float:
    return sum(len(message.content) / 3.5 + 5 for message in prompt.messages)


def test_c35_the_prompt_has_the_instructions_of_its_time() -> None:
    call = Written()
    call.set(instructions="P1")
    assert words(call.ask("one"))[0] == "Be kind.\n\nP1"
    call.answer(TextDelta("yes"))
    call.set(instructions="P2")
    second = call.ask("two")
    assert words(second) == ["Be kind.\n\nP2", "one", "yes", "two"]
    call.set(instructions="P3")
    call.answer(TextDelta("yes"))
    assert words(call.ask("three"))[0] == "Be kind.\n\nP3"
    call.answer(TextDelta("yes"))
    own = call.wants_an_answer(ResponseParams(instructions="P4"))
    assert words(own)[0] == "Be kind.\n\nP4"
    call.answer(TextDelta("yes"))
    assert [d.response.status for d in call.client.of(ResponseDone)] == ["completed"] * 4


@pytest.mark.parametrize(
    "truncation",
    [
        "auto",
        RetentionRatio(retention_ratio=0.5),
        RetentionRatio(retention_ratio=0.8, token_limits=TokenLimits(post_instructions=150)),
    ],
)
def test_c60_prompts_of_a_long_conversation_keep_what_must_stay_and_begin_alike(
    truncation: Truncation,
) -> None:
    call = Written()
    look = FunctionTool(name="look")
    call.set(instructions="Be brief.", tools=(look,), truncation=truncation)
    prompts: list[ChatRequest] = []
    for number in range(TURNS):
        prompts.append(call.ask(f"question {number}"))
        if number % 3 == 0:
            call_id = call.call_function()
            output = FunctionCallOutputItem(call_id=call_id, output=f"seen {number}")
            call.send(CreateItem(item=output))
            prompts.append(call.wants_an_answer())
        call.answer(TextDelta(f"answer {number}"), TokenUsage(9, 2, 5))
    assert call.client.of(ErrorEvent) == []
    done = call.client.of(ResponseDone)
    assert {event.response.status for event in done} == {"completed"}
    assert all(event.response.usage is not None for event in done)
    for prompt in prompts:
        assert words(prompt)[0] == "Be kind.\n\nBe brief."
        assert [function.name for function in prompt.tools.functions] == ["look"]
        assert weight(prompt) <= ROOM_TOKENS
        waiting: list[str] = []
        for message in prompt.messages:
            assert (message.role == "tool") == bool(waiting)
            if waiting:
                assert message.call_id == waiting.pop()
            waiting += [each.call_id for each in message.calls]
        assert waiting == []
    beginnings = [words(prompt)[1] for prompt in prompts]
    changes = sum(a != b for a, b in itertools.pairwise(beginnings))
    assert 0 < changes < len(prompts) / 3


def test_c60_where_nothing_may_be_left_out_the_answer_fails_and_says_why() -> None:
    call = Written()
    call.set(truncation="disabled")
    for number in range(6):
        call.ask(f"question {number} " + "x" * 100)
        call.answer(TextDelta("yes"))
    before = len(call.engine.of("llm"))
    item = MessageItem(id="last", role="user", content=(InputText(text="x" * 600),))
    call.send(CreateItem(item=item), CreateResponse())
    assert len(call.engine.of("llm")) == before
    failed = call.client.last(ResponseDone).response
    assert failed.status == "failed"
    assert failed.status_details is not None
    assert failed.status_details.error is not None
    assert failed.status_details.error.code == "context_length_exceeded"
    # Nothing has been lost: with truncation the same conversation is answered.
    call.set(truncation="auto")
    call.wants_an_answer()
    call.answer(TextDelta("yes"))
    assert call.client.last(ResponseDone).response.status == "completed"


def test_a_model_that_was_cut_says_so_in_the_words_of_ga() -> None:
    call = Written()
    prompt = call.wants_an_answer(ResponseParams(max_output_tokens=3))
    assert prompt.max_tokens == 3
    call.answer(TextDelta("one two three"), TokenUsage(9, 3, cut=True))
    done = call.client.last(ResponseDone).response
    assert done.status == "incomplete"
    assert done.status_details is not None
    assert (done.status_details.type, done.status_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )
    assert done.output[0].status == "incomplete"


def test_a_function_that_the_model_made_up_fails_the_answer_alone() -> None:
    call = Written()
    call.set(tools=(FunctionTool(name="look"),))
    call.ask("fly!")
    call.answer(ToolCallDelta(0, name="fly", arguments="{}"))
    failed = call.client.last(ResponseDone).response
    assert failed.status_details is not None
    assert failed.status_details.error is not None
    assert failed.status_details.error.code == "tool_call_invalid"
    call.ask("well?")
    call.answer(TextDelta("sorry"))
    assert call.client.last(ResponseDone).response.status == "completed"
