"""What every runner for language models does, whatever the model writes.

A test module makes the fixture ``jobs``, with a runner that can write eight answers at once and
reads ``CONTEXT_TOKENS`` at most, and inherits ``ChatContract``.
"""

from __future__ import annotations

import json

import msgspec

from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    Payload,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.engines.runners.llm.chat_chunk import CONTEXT_EXCEEDED, REQUEST_REFUSED
from tests.fakes.jobs import Jobs

CONTEXT_TOKENS = 1024
STORY = "Once upon a time there was a king who had three daughters and no cook at all. " * 3

LIGHT = ToolSpec(
    "switch_light",
    "Switch the light.",
    '{"type":"object","properties":{"to":{"enum":["on","off"]}},"required":["to"],'
    '"additionalProperties":false}',
)


def ask(content: str = "Tell me a story.", max_tokens: int = 16, **more: object) -> ChatRequest:
    request = ChatRequest((ChatMessage("user", content),), max_tokens)
    return msgspec.structs.replace(request, **more)


def text_of(outputs: list[Payload]) -> str:
    return "".join(each.text for each in outputs if isinstance(each, TextDelta))


class ChatContract:
    """The tests."""

    def test_an_answer_comes_as_text_then_usage(self, jobs: Jobs) -> None:
        outputs = jobs.outputs_of([ask()])
        assert text_of(outputs)
        (usage,) = (each for each in outputs if isinstance(each, TokenUsage))
        assert outputs[-1] is usage
        assert usage.input_tokens > 0
        assert 0 < usage.output_tokens <= 16

    def test_an_answer_that_was_allowed_no_more_says_so(self, jobs: Jobs) -> None:
        usage = jobs.outputs_of([ask(max_tokens=1)])[-1]
        assert isinstance(usage, TokenUsage)
        assert usage.cut
        assert usage.output_tokens == 1

    def test_text_is_handed_on_while_more_is_written(self, jobs: Jobs) -> None:
        job = jobs.open(ask(STORY, max_tokens=400))
        first = text_of(jobs.until(job, TextDelta))
        assert first
        rest, error = jobs.finish(job)
        assert error is None
        assert len(text_of(rest)) > len(first)

    def test_eight_answers_are_written_at_once(self, jobs: Jobs) -> None:
        asked = [jobs.open(ask(f"{STORY} Number {n}.", max_tokens=200)) for n in range(8)]
        assert jobs.runner is not None
        assert jobs.runner.max_batch >= len(asked)
        # All have begun before the first is followed to its end; one may be at its end by then.
        begun = [jobs.until(job, TextDelta) for job in asked]
        for job, first in zip(asked, begun, strict=True):
            rest, error = jobs.finish(job)
            assert error is None
            assert isinstance((first + rest)[-1], TokenUsage)

    def test_a_cancel_stops_the_writing_and_makes_room(self, jobs: Jobs) -> None:
        assert jobs.runner is not None
        for _ in range(3):  # more than the room for one round
            stopped = [jobs.open(ask(STORY, max_tokens=600)) for _ in range(8)]
            for job in stopped:
                jobs.until(job, TextDelta)
                jobs.runner.close(job)
        assert text_of(jobs.outputs_of([ask()]))

    def test_a_cancel_before_the_first_word_is_no_harm(self, jobs: Jobs) -> None:
        assert jobs.runner is not None
        job = jobs.open(ask(STORY, max_tokens=600))
        jobs.runner.step([job])
        jobs.runner.close(job)
        assert text_of(jobs.outputs_of([ask()]))

    def test_reading_ahead_writes_nothing_and_is_remembered(self, jobs: Jobs) -> None:
        (first,) = jobs.outputs_of([ask(STORY, max_tokens=0)])
        assert isinstance(first, TokenUsage)
        assert first.input_tokens > 0
        assert first.output_tokens == 0
        again = jobs.outputs_of([ask(STORY)])[-1]
        assert isinstance(again, TokenUsage)
        assert again.cached_tokens > first.input_tokens // 2

    def test_the_same_words_come_again_without_chance_and_with_the_same_seed(
        self, jobs: Jobs
    ) -> None:
        for more in ({}, {"temperature": 0.9, "seed": 7}):
            request = ask(max_tokens=24, **more)
            first, again = (text_of(jobs.outputs_of([request])) for _ in range(2))
            assert first == again

    def test_a_prompt_that_is_too_long_is_named_and_others_go_on(self, jobs: Jobs) -> None:
        _, error = jobs.run(ask("long " * CONTEXT_TOKENS * 2))
        assert error is not None
        assert error.code == CONTEXT_EXCEEDED
        assert text_of(jobs.outputs_of([ask()]))

    def test_an_answer_obeys_its_schema(self, jobs: Jobs) -> None:
        schema = (
            '{"type":"object","properties":{"mood":{"enum":["good","bad"]}},"required":["mood"]'
        )
        outputs = jobs.outputs_of(
            [ask(max_tokens=64, schema=schema + ',"additionalProperties":false}')]
        )
        assert json.loads(text_of(outputs))["mood"] in ("good", "bad")

    def test_a_schema_that_is_none_is_refused(self, jobs: Jobs) -> None:
        _, error = jobs.run(ask(schema='{"type":"nonsense"}'))
        assert error is not None
        assert error.code == REQUEST_REFUSED
        assert text_of(jobs.outputs_of([ask()]))

    def test_a_function_that_must_be_called_is_called(self, jobs: Jobs) -> None:
        tools = Tools((LIGHT,), choice="required")
        outputs = jobs.outputs_of([ask("Switch the light off.", max_tokens=96, tools=tools)])
        call = next(each for each in outputs if isinstance(each, ToolCallDelta))
        assert call.name == "switch_light"
        assert json.loads(call.arguments)["to"] in ("on", "off")
        assert not text_of(outputs)

    def test_weights_that_nobody_laid_beside_it_are_refused(self, jobs: Jobs) -> None:
        _, error = jobs.run(ask(adapter="nosuch"))
        assert error is not None
        assert error.code == REQUEST_REFUSED
        assert "nosuch" in error.message

    def test_something_else_than_a_prompt_is_refused(self, jobs: Jobs) -> None:
        _, error = jobs.run(AudioChunk(b"", 1))
        assert error is not None
        assert "AudioChunk" in error.message
