"""The runner around a server that writes what the test says; the real one is in tests/models."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.engines.runners.contract import Job
from duologue.engines.runners.llm.chat_chunk import CONTEXT_EXCEEDED
from duologue.engines.runners.llm.llama_cpp import (
    LlamaCppRunner,
    LlamaCppSettings,
    _signals_as_they_were,
    build,
)
from tests.fakes.jobs import Jobs
from tests.patience import PATIENCE_S


def text(content: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": content}}]}


USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}
READING = {"choices": [{"delta": {}}], "prompt_progress": {"total": 9}}


class FakeServer:
    """Writes what ``answer`` gives for a request, until it is told to stop."""

    def __init__(self, answer: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.stopped = 0

    def handle_chat_completions(self, body: Any, on_piece: Callable[[Any], bool]) -> None:
        self.asked.append(body)
        for piece in self.answer(body):
            if on_piece(piece):
                self.stopped += 1
                return


def jobs_on(
    answer: Callable[[dict[str, Any]], Iterable[dict[str, Any]]], slots: int = 2
) -> tuple[Jobs, FakeServer]:
    jobs, server = Jobs(), FakeServer(answer)
    settings = LlamaCppSettings(model_path="none", slots=slots)
    jobs.runner = LlamaCppRunner(server, settings, jobs.wake)
    return jobs, server


def ask(content: str = "Hi", max_tokens: int = 10) -> ChatRequest:
    return ChatRequest((ChatMessage("user", content),), max_tokens)


def test_an_answer_comes_as_text_then_usage() -> None:
    jobs, server = jobs_on(lambda _: [READING, text("Hel"), text("lo"), USAGE])
    outputs = jobs.outputs_of([ask()])
    assert "".join(o.text for o in outputs if isinstance(o, TextDelta)) == "Hello"
    assert outputs[-1] == TokenUsage(9, 2, 4)
    (body,) = server.asked
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert body["max_tokens"] == 10
    assert body["cache_prompt"]
    assert body["add_generation_prompt"]


def test_tokens_are_handed_on_while_more_are_written() -> None:
    go_on = threading.Event()

    def answer(_: object) -> Iterator[dict[str, Any]]:
        yield text("Hel")
        assert go_on.wait(PATIENCE_S)
        yield text("lo")

    jobs, _ = jobs_on(answer)
    job = jobs.open(ask())
    assert jobs.until(job, TextDelta) == [TextDelta("Hel")]
    go_on.set()
    assert jobs.finish(job) == ([TextDelta("lo")], None)


def test_reading_ahead_writes_nothing() -> None:
    jobs, server = jobs_on(lambda _: [READING, text("Hello"), USAGE])
    assert jobs.outputs_of([ask(max_tokens=0)]) == [TokenUsage(9, 0, 4)]
    (body,) = server.asked
    assert not body["add_generation_prompt"]


def test_several_answers_are_written_at_once() -> None:
    both = threading.Barrier(2)

    def answer(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        both.wait(PATIENCE_S)
        yield text(body["messages"][0]["content"])

    jobs, server = jobs_on(answer)
    first, second = jobs.open(ask("one")), jobs.open(ask("two"))
    for job in (first, second):
        jobs.next(job)
    assert jobs.finish(first)[0] == [TextDelta("one")]
    assert jobs.finish(second)[0] == [TextDelta("two")]
    assert {body["id_slot"] for body in server.asked} == {0, 1}


def test_a_cancel_stops_the_writing_and_frees_the_slot_at_once() -> None:
    cancelled = threading.Event()

    def answer(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield text("a")
        if body["messages"][0]["content"] == "long":
            assert cancelled.wait(PATIENCE_S)
            while True:
                yield text("b")

    jobs, server = jobs_on(answer, slots=1)
    job = jobs.open(ask("long"))
    jobs.until(job, TextDelta)
    assert jobs.runner is not None
    jobs.runner.close(job)
    following = jobs.open(ask("short"))
    jobs.next(following)
    cancelled.set()
    assert jobs.finish(following)[0] == [TextDelta("a")]
    assert server.stopped == 1


def test_a_cancel_takes_effect_while_the_prompt_is_read() -> None:
    reading, cancelled = threading.Event(), threading.Event()

    def answer(_: object) -> Iterator[dict[str, Any]]:
        reading.set()
        assert cancelled.wait(PATIENCE_S)
        while True:
            yield READING

    jobs, server = jobs_on(answer, slots=1)
    job = jobs.open(ask())
    jobs.next(job)
    assert reading.wait(PATIENCE_S)
    assert jobs.runner is not None
    jobs.runner.close(job)
    server.answer = lambda _: [text("next")]
    cancelled.set()
    assert jobs.outputs_of([ask()]) == [TextDelta("next")]
    assert server.stopped == 1


def test_a_job_that_was_cancelled_before_its_turn_is_never_asked() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def answer(_: object) -> Iterator[dict[str, Any]]:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        yield text("x")

    jobs, server = jobs_on(answer, slots=1)
    assert jobs.runner is not None
    for content in ("first", "second"):
        job = jobs.open(ask(content))
        jobs.next(job)
        assert begun.wait(PATIENCE_S)
        jobs.runner.close(job)
    third = jobs.open(ask("third"))
    jobs.next(third)
    go_on.set()
    jobs.finish(third)
    assert [body["messages"][0]["content"] for body in server.asked] == ["first", "third"]


def test_a_conversation_keeps_its_slot() -> None:
    jobs, server = jobs_on(lambda _: [text("Fine.")], slots=3)

    def turn(*texts: str) -> None:
        roles = ("user", "assistant")
        messages = tuple(ChatMessage(roles[n % 2], t) for n, t in enumerate(texts))
        jobs.outputs_of([ChatRequest(messages, 10)])

    turn("How are you?")
    turn("What is four?")
    turn("How are you?", "Fine.", "Good.")
    turn("What is four?", "Fine.", "Good.")
    slots = [body["id_slot"] for body in server.asked]
    assert slots[0] == slots[2] != slots[1] == slots[3]


def test_more_answers_than_slots_is_an_error_of_the_one_too_many() -> None:
    go_on = threading.Event()

    def answer(_: object) -> Iterator[dict[str, Any]]:
        assert go_on.wait(PATIENCE_S)
        yield text("x")

    jobs, _ = jobs_on(answer, slots=1)
    first = jobs.open(ask())
    jobs.next(first)
    _, error = jobs.run(ask())
    assert error is not None
    assert "the limit is 1" in error.message
    go_on.set()
    assert jobs.finish(first)[1] is None


def test_a_prompt_that_is_too_long_is_named() -> None:
    complaint = {"error": {"type": "exceed_context_size_error", "message": "3000 of 2048"}}
    jobs, _ = jobs_on(lambda _: [complaint])
    _, error = jobs.run(ask())
    assert error is not None
    assert (error.code, error.quote) == (CONTEXT_EXCEEDED, "3000 of 2048")


@pytest.mark.parametrize(
    ("fault", "code"),
    [(RuntimeError("no memory"), "stage_failed"), (ValueError("bad schema"), "request_refused")],
)
def test_a_server_that_breaks_fails_the_job(fault: Exception, code: str) -> None:
    def answer(_: object) -> Iterator[dict[str, Any]]:
        yield text("a")
        raise fault

    jobs, _ = jobs_on(answer)
    outputs, error = jobs.run(ask())
    assert outputs == [TextDelta("a")]
    assert error is not None
    assert (error.code, error.quote) == (code, str(fault))


def test_something_else_than_a_prompt_is_refused() -> None:
    jobs, _ = jobs_on(lambda _: [])
    _, error = jobs.run(AudioChunk(b"", 1))
    assert error is not None
    assert "AudioChunk" in error.message


def test_pictures_are_refused_before_anything_is_asked() -> None:
    jobs, server = jobs_on(lambda _: [text("Hello")])
    _, error = jobs.run(ChatRequest((ChatMessage("user", "", images=("data:image/",)),), 10))
    assert error is not None
    assert error.code == "request_refused"
    assert server.asked == []


def test_warming_up_uses_every_slot() -> None:
    jobs, server = jobs_on(lambda _: [text("Hello")], slots=3)
    assert jobs.runner is not None
    jobs.runner.warm_up()
    assert sorted(body["id_slot"] for body in server.asked) == [0, 1, 2]


def test_a_job_without_a_prompt_is_not_ready() -> None:
    jobs, _ = jobs_on(lambda _: [])
    assert jobs.runner is not None
    job = Job(id="a")
    jobs.runner.open(job)
    assert not jobs.runner.ready(job)
    jobs.runner.close(job)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "model.gguf"
    with pytest.raises(ConfigError, match=r"model\.gguf.*models pull"):
        build(LlamaCppSettings(model_path=str(missing)), lambda: None)


def test_the_librarys_signal_handlers_do_not_stay() -> None:
    before = signal.getsignal(signal.SIGTERM)
    native = native_handler()
    with _signals_as_they_were():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert native_handler() != native
    assert native_handler() == native
    signal.signal(signal.SIGTERM, before)


def native_handler() -> bytes:
    """The first word of ``struct sigaction``."""
    action = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).sigaction(int(signal.SIGTERM), None, action)
    return action.raw[: ctypes.sizeof(ctypes.c_void_p)]


# Functions

FUNCTIONS = (ToolSpec("look"), ToolSpec("go"))
CALL = '{"name": "look", "arguments": {"at": 1}}'


def offering(tools: Tools) -> ChatRequest:
    return ChatRequest((ChatMessage("user", "Hi"),), 10, tools=tools)


def test_a_call_is_found_in_what_the_model_writes() -> None:
    pieces = [text("One moment."), text("\n```json\n"), text(CALL[:9]), text(CALL[9:] + "\n```")]
    jobs, server = jobs_on(lambda _: [*pieces, USAGE])
    outputs = jobs.outputs_of([offering(Tools(FUNCTIONS))])
    assert outputs == [
        TextDelta("One moment."),
        ToolCallDelta(0, name="look", arguments='{"at":1}'),
        TokenUsage(9, 2, 4),
    ]
    assert [tool["function"]["name"] for tool in server.asked[0]["tools"]] == ["look", "go"]


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (Tools(FUNCTIONS, "required"), {"look", "go"}),
        (Tools(FUNCTIONS, "required", "go"), {"go"}),
    ],
)
def test_a_model_that_must_call_is_held_to_the_form_of_a_call(
    tools: Tools, names: set[str]
) -> None:
    jobs, server = jobs_on(lambda _: [text(CALL), USAGE])
    outputs = jobs.outputs_of([offering(tools)])
    assert isinstance(outputs[0], ToolCallDelta)
    (body,) = server.asked
    assert body["tool_choice"] == "auto"
    schema = body["response_format"]["json_schema"]["schema"]
    forms = schema.get("anyOf", [schema])
    assert {form["properties"]["name"]["const"] for form in forms} == names


def test_a_model_that_may_call_nothing_is_shown_nothing() -> None:
    jobs, server = jobs_on(lambda _: [text("Hello."), USAGE])
    jobs.outputs_of([offering(Tools(FUNCTIONS, "none"))])
    assert "tools" not in server.asked[0]
