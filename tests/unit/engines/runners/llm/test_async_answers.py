"""The runner around a writer that the test makes: what any such library has to do."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payloads import ChatRequest, TextDelta, TokenUsage
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.llm.async_answers import (
    AsyncAnswers,
    WriterBroken,
    loop_in_a_thread,
)
from duologue.engines.runners.llm.chat_chunk import (
    CONTEXT_EXCEEDED,
    REQUEST_REFUSED,
    ChatChunk,
    chunk_from,
)
from duologue.engines.runners.llm.requests import held_to_calls, no_adapter
from duologue.engines.runners.registry import Wake
from tests.fakes.jobs import Jobs
from tests.unit.engines.runners.llm.chat_contract import CONTEXT_TOKENS, ChatContract, ask

Writing = Callable[[ChatRequest], AsyncIterator[ChatChunk]]


def text(content: str, finish_reason: str | None = None) -> ChatChunk:
    choice = {"delta": {"content": content}, "finish_reason": finish_reason}
    return chunk_from({"choices": [choice]})


def usage(read: int, written: int, cached: int) -> ChatChunk:
    details = {"cached_tokens": cached}
    counts = {"prompt_tokens": read, "completion_tokens": written}
    return chunk_from({"usage": {**counts, "prompt_tokens_details": details}})


FIRST_WORDS = 8


class Parrot:
    """Says the prompt word by word, over and over; a word is a token. It remembers prompts.

    Behind the first words it waits until somebody has taken some of them.
    """

    def __init__(self) -> None:
        self.read: list[list[str]] = []
        self.writing = 0
        self.taken: dict[int, asyncio.Event] = {}
        """By the identity of the request."""

    async def write(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        taken = self.taken[id(request)] = asyncio.Event()
        if request.adapter:
            raise no_adapter(request.adapter, ())
        request = held_to_calls(request)
        prompt = " ".join(message.content for message in request.messages).split()
        if len(prompt) >= CONTEXT_TOKENS:
            raise EngineError("too long", code=CONTEXT_EXCEEDED)
        cached = max((_same(prompt, earlier) for earlier in self.read), default=0)
        self.read.append(prompt)
        words = _words(request, prompt)
        written = 0
        self.writing += 1
        try:
            for word in words:
                if written == request.max_tokens:
                    break
                written += 1
                await asyncio.sleep(0)
                yield text(word)
                if written == FIRST_WORDS:
                    taken.clear()
                    await taken.wait()
            yield text("", "length" if written == request.max_tokens else "stop")
            yield usage(len(prompt), written, cached)
        finally:
            self.writing -= 1


def _words(request: ChatRequest, prompt: list[str]) -> Iterator[str]:
    if not request.schema:
        while True:
            yield from (f"{word} " for word in prompt)
    schema = json.loads(request.schema)
    if schema.get("type") != "object":
        raise EngineError("no schema", code=REQUEST_REFUSED)
    yield json.dumps(_obeying(schema))


def _obeying(schema: dict[str, Any]) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    return {name: _obeying(each) for name, each in schema["properties"].items()}


def _same(one: list[str], other: list[str]) -> int:
    return next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one)
    )


class Script:
    """Writes what a function of the test yields."""

    def __init__(self, write: Writing) -> None:
        self.write = write


class Told(AsyncAnswers):
    """Lets a parrot know which of its answers somebody has taken from."""

    def __init__(self, parrot: Parrot, wake: Wake) -> None:
        self.loop = loop_in_a_thread("answers")
        super().__init__(parrot, self.loop, 8, wake)
        self.parrot = parrot
        self.requests: dict[str, int] = {}

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        self.requests |= {job.id: id(job.inputs[0]) for job in jobs if job.inputs}
        steps = super().step(jobs)
        for job in jobs:
            self.loop.call_soon_threadsafe(self.take, self.requests[job.id])
        return steps

    def take(self, request: int) -> None:
        if request in self.parrot.taken:
            self.parrot.taken[request].set()


def jobs_of(writer: Parrot | Script) -> Jobs:
    jobs = Jobs()
    if isinstance(writer, Parrot):
        jobs.runner = Told(writer, jobs.wake)
    else:
        jobs.runner = AsyncAnswers(writer, loop_in_a_thread("answers"), 8, jobs.wake)
    return jobs


@pytest.fixture
def jobs() -> Jobs:
    return jobs_of(Parrot())


class TestAsyncAnswers(ChatContract):
    pass


def test_warming_up_writes_something() -> None:
    parrot = Parrot()
    jobs = jobs_of(parrot)
    assert jobs.runner is not None
    jobs.runner.warm_up()
    assert parrot.read == [["Hello."]]


def test_a_warm_up_that_fails_says_why() -> None:
    async def write(_: ChatRequest) -> AsyncIterator[ChatChunk]:
        raise EngineError("no room")
        yield text("")

    jobs = jobs_of(Script(write))
    assert jobs.runner is not None
    with pytest.raises(EngineError, match="no room"):
        jobs.runner.warm_up()


def test_a_cancel_reaches_the_writer() -> None:
    parrot = Parrot()
    jobs = jobs_of(parrot)
    job = jobs.open(ask(max_tokens=4000))
    jobs.until(job, TextDelta)
    assert jobs.runner is not None
    jobs.runner.close(job)
    jobs.outputs_of([ask()])
    assert parrot.writing == 0


def test_a_writer_that_breaks_ends_the_worker() -> None:
    async def write(_: ChatRequest) -> AsyncIterator[ChatChunk]:
        yield text("a")
        raise WriterBroken("dead")

    jobs = jobs_of(Script(write))
    job = jobs.open(ask())
    with pytest.raises(WriterBroken, match="dead"):
        jobs.finish(job)


def test_a_fault_that_nobody_expects_fails_the_answer_alone() -> None:
    async def write(request: ChatRequest) -> AsyncIterator[ChatChunk]:
        yield text("a")
        if request.max_tokens == 1:
            raise RuntimeError("what?")
        yield usage(1, 1, 0)

    jobs = jobs_of(Script(write))
    _, error = jobs.run(ask(max_tokens=1))
    assert error is not None
    assert "broke off" in error.message
    assert jobs.outputs_of([ask()])[-1] == TokenUsage(1, 1)


class Sleepy(Parrot):
    """Holds memory beside itself."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.refusal: EngineError | None = None

    async def sleep(self, level: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(f"sleep {level}")

    async def wake(self) -> None:
        self.calls.append("wake")


def test_a_writer_that_sleeps_is_told_and_at_level_2_its_loop_ends() -> None:
    writer = Sleepy()
    runner = AsyncAnswers(writer, loop_in_a_thread("sleepy"), 8, lambda: None)
    runner.sleep(1)
    runner.wake()
    (thread,) = [each for each in threading.enumerate() if each.name == "sleepy"]
    runner.sleep(2)
    thread.join(10)
    assert not thread.is_alive()
    assert writer.calls == ["sleep 1", "wake", "sleep 2"]


def test_a_writer_that_cannot_sleep_goes_on() -> None:
    writer = Sleepy()
    writer.refusal = EngineError("not on a CPU", code="sleep_unsupported")
    runner = AsyncAnswers(writer, loop_in_a_thread("wakeful"), 8, lambda: None)
    with pytest.raises(EngineError, match="not on a CPU"):
        runner.sleep(2)
    runner.warm_up()
    writer.refusal = None
    runner.sleep(2)


def test_a_writer_that_holds_nothing_need_not_be_told() -> None:
    runner = AsyncAnswers(Parrot(), loop_in_a_thread("plain"), 8, lambda: None)
    runner.wake()
    runner.sleep(2)
