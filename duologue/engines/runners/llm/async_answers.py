"""Answers of a library that lives on an event loop: a loop in a thread, and the jobs it writes for.

Each answer is a task of that loop; a cancelled one is cancelled there, which is how the library
learns of it. This module must not know the library, or what the text is for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from typing import Protocol, cast, runtime_checkable

from duologue.core.errors import EngineError
from duologue.engines.lifecycle_port import DROPPED
from duologue.engines.payloads import ChatMessage, ChatRequest, TokenUsage
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.background import OutputFeed
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.llm.answer_reader import AnswerReader
from duologue.engines.runners.llm.chat_chunk import ChatChunk
from duologue.engines.runners.llm.requests import take_request
from duologue.engines.runners.registry import Wake

_WARM_UP = ChatRequest((ChatMessage("user", "Hello."),), max_tokens=2)


class WriterBroken(Exception):
    """The library is of no use any more: the worker should end, and be started again."""


class ChatWriter(Protocol):
    """A language model with an event loop."""

    def write(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        """Write one answer, piece by piece; the last piece has the usage.

        With ``max_tokens`` 0 the prompt is only read. Closing the iterator, or cancelling its
        task, stops the writing.

        Raises:
            EngineError: This request cannot be answered.
            WriterBroken: None can.
        """
        ...


@runtime_checkable
class SleepingWriter(Protocol):
    """A writer that holds memory which does not go with it."""

    async def sleep(self, level: int) -> None:
        """Let memory go, see ``contract.Sleeper``; at level 2 for good.

        Raises:
            EngineError: It cannot.
        """
        ...

    async def wake(self) -> None:
        """Be as before level 1."""
        ...


class _Answer:
    def __init__(self, feed: OutputFeed, task: Future[None]) -> None:
        self.feed = feed
        self.task = task


class AsyncAnswers:
    """The runner around a writer.

    Args:
        loop: Runs already, in a thread of its own.
        max_batch: How many answers are followed at once.
    """

    def __init__(
        self, writer: ChatWriter, loop: asyncio.AbstractEventLoop, max_batch: int, wake: Wake
    ) -> None:
        self.max_batch = max_batch
        self._writer = writer
        self._loop = loop
        self._wake = wake
        self._broken: WriterBroken | None = None

    def warm_up(self) -> None:
        """Write two tokens."""
        feed = OutputFeed(lambda: None, capacity=_capacity(_WARM_UP))
        asyncio.run_coroutine_threadsafe(self._write(_WARM_UP, feed), self._loop).result()
        error = feed.take().error
        if error is not None:
            raise error

    def open(self, job: Job) -> None:
        """Wait for the prompt."""
        job.state = None

    def ready(self, job: Job) -> bool:
        """A prompt is waiting, or something was written."""
        answer = cast("_Answer | None", job.state)
        return bool(job.inputs) if answer is None else answer.feed.has_news()

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Begin what is new; hand out what has been written."""
        if self._broken is not None:
            raise self._broken
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Stop writing."""
        answer = cast("_Answer | None", job.state)
        if answer is not None:
            answer.feed.stop()
            answer.task.cancel()
            job.state = None

    def sleep(self, level: int) -> None:
        """Let the writer's memory go; at level 2 its loop ends, too."""
        if isinstance(self._writer, SleepingWriter):
            asyncio.run_coroutine_threadsafe(self._writer.sleep(level), self._loop).result()
        if level == DROPPED:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def wake(self) -> None:
        """Have the writer as before."""
        if isinstance(self._writer, SleepingWriter):
            asyncio.run_coroutine_threadsafe(self._writer.wake(), self._loop).result()

    def _step_one(self, job: Job) -> Step:
        answer = cast("_Answer | None", job.state)
        if answer is not None:
            return answer.feed.take()
        request = take_request(job)
        feed = OutputFeed(self._wake, _capacity(request))
        task = asyncio.run_coroutine_threadsafe(self._write(request, feed), self._loop)
        job.state = _Answer(feed, task)
        return Step()

    async def _write(self, request: ChatRequest, feed: OutputFeed) -> None:
        reader = AnswerReader(request)
        try:
            async for chunk in self._writer.write(request):
                if request.max_tokens:
                    for output in reader.feed(chunk):
                        feed.put(output)
                elif (usage := chunk.token_usage()) is not None:
                    feed.put(TokenUsage(usage.input_tokens, 0, usage.cached_tokens))
            for output in reader.finish():
                feed.put(output)
            feed.end()
        except EngineError as exc:
            feed.end(exc)
        except WriterBroken as exc:
            self._broken = exc
        finally:
            feed.end(EngineError("the language model broke off"))


def _capacity(request: ChatRequest) -> int:
    """More than an answer can have: the loop must not wait for the worker."""
    return 2 * request.max_tokens + 64


def loop_in_a_thread(name: str) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs until it is stopped, or for as long as the process."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    threading.Thread(target=run, name=name, daemon=True).start()
    return loop
