"""Language models behind any server that speaks ``POST /chat/completions``, streamed.

A thread per answer follows the server's events; a cancel closes the connection, which is how such
servers learn of it. This module must not know what the text is for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Annotated, Literal, cast

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import ChatRequest, TokenUsage
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.background import OutputFeed
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.http_stream import HttpPost, Upstream, read_api_key
from duologue.engines.runners.llm.answer_reader import AnswerReader
from duologue.engines.runners.llm.chat_chunk import ChatBody, chat_body, parse_chunk
from duologue.engines.runners.llm.requests import take_request
from duologue.engines.runners.registry import RunnerType, Wake

Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]

_DATA = b"data:"
_DONE = b"[DONE]"
_WAITING_PIECES = 1024


class ChatUrlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``openai_chat``.

    Args:
        base_url: Up to and with the version.
        model: As the server calls it.
        api_key_file: A file that holds the key and nothing else; empty: none is sent.
        max_batch: How many answers are followed at once. At least the stage's ``max_jobs``.
        length_field: What the server calls the longest answer.
    """

    base_url: str
    model: str
    api_key_file: str = ""
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    connect_timeout_s: Seconds = 5.0
    silence_timeout_s: Seconds = 30.0
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


class _Answer:
    """A job: its connection and what has come through it."""

    def __init__(self, post: HttpPost, feed: OutputFeed, reader: AnswerReader) -> None:
        self.post = post
        self.feed = feed
        self.reader = reader


class ChatUrlRunner:
    """Lets others write answers."""

    def __init__(self, settings: ChatUrlSettings, upstream: Upstream, wake: Wake) -> None:
        self.max_batch = settings.max_batch
        self._settings = settings
        self._upstream = upstream
        self._wake = wake

    def warm_up(self) -> None:
        """Nothing is asked of a server that may cost money."""

    def open(self, job: Job) -> None:
        """Wait for the prompt."""
        job.state = None

    def ready(self, job: Job) -> bool:
        """A prompt is waiting, or something was written."""
        answer = cast("_Answer | None", job.state)
        return bool(job.inputs) if answer is None else answer.feed.has_news()

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Ask what is new; hand out what has come."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Hang up."""
        answer = cast("_Answer | None", job.state)
        if answer is not None:
            answer.feed.stop()
            answer.post.abort()
            job.state = None

    def _step_one(self, job: Job) -> Step:
        answer = cast("_Answer | None", job.state)
        if answer is not None:
            return answer.feed.take()
        request = take_request(job)
        if request.max_tokens == 0:
            # Reading ahead helps only where the cache is ours.
            return Step((TokenUsage(0, 0),), done=True)
        body = msgspec.json.encode(self._body(request))
        post = HttpPost(self._upstream, "/chat/completions", body)
        job.state = answer = _Answer(
            post, OutputFeed(self._wake, _WAITING_PIECES), AnswerReader(request)
        )
        threading.Thread(target=_follow, args=(answer,), name="chat", daemon=True).start()
        return Step()

    def _body(self, request: ChatRequest) -> ChatBody:
        body = chat_body(request)
        # Servers that lay other weights over a model's give the two together a name of its own.
        body.model = request.adapter or self._settings.model
        if self._settings.length_field == "max_completion_tokens":
            body.max_completion_tokens, body.max_tokens = body.max_tokens, None
        return body


def _follow(answer: _Answer) -> None:
    """Read one answer to its end, in a thread of its own."""
    feed = answer.feed
    try:
        for line in answer.post.lines():
            if not line.startswith(_DATA):
                continue
            data = line.removeprefix(_DATA).strip()
            if data == _DONE:
                for output in answer.reader.finish():
                    feed.put(output)
                feed.end()
                return
            chunk = parse_chunk(data)
            error = chunk.failure("the server")
            if error is not None:
                feed.end(error)
                return
            for output in answer.reader.feed(chunk):
                feed.put(output)
        feed.end(EngineError("the server broke off its answer", code="upstream_failed"))
    except EngineError as exc:
        feed.end(exc)
    finally:
        feed.end(EngineError("the answer could not be read"))


def build(settings: ChatUrlSettings, wake: Wake) -> ChatUrlRunner:
    """Check the settings; the server is not asked before there is a prompt."""
    upstream = Upstream(
        settings.base_url,
        read_api_key(settings.api_key_file),
        settings.connect_timeout_s,
        settings.silence_timeout_s,
    )
    upstream.check()
    return ChatUrlRunner(settings, upstream, wake)


OPENAI_CHAT = RunnerType(ChatUrlSettings, build, wakes_itself=True)
