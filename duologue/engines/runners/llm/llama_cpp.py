"""Language models in GGUF files, run by llama.cpp in this process (package ``xllamacpp``).

Several jobs are decoded together; each conversation keeps a slot, whose cache then needs to read
only what is new. A thread per answer follows it token by token and can stop it at any token, also
while the prompt is still being read. This module must not know what the text is for.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import msgspec

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import ChatMessage, ChatRequest, TokenUsage
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.background import OutputFeed
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.llm.answer_reader import AnswerReader
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED, chat_body, chunk_from
from duologue.engines.runners.llm.requests import (
    held_to_calls,
    no_adapter,
    refuse_pictures,
    take_request,
)
from duologue.engines.runners.llm.slots import Slot, best_slot
from duologue.engines.runners.registry import RunnerType, Wake

_SIGACTION_BYTES = 1024
"""More than ``struct sigaction`` needs on any system."""

_WARM_UP = ChatRequest((ChatMessage("user", "Hello."),), max_tokens=2)


class LlamaCppSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``llama_cpp``.

    Args:
        model_path: A GGUF file. Its own chat template is used.
        slots: How many answers are written at once, and how many conversations are remembered.
            At least the stage's ``max_jobs``.
        slot_tokens: Prompt and answer together.
        threads: For computing; 0: one per core, 8 at most.
        batch_tokens: How much of a prompt is read between two looks at whether it is still wanted.
        repeat_penalty: Above 1, words that were used are less likely to come again.
    """

    model_path: str
    slots: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    slot_tokens: Annotated[int, msgspec.Meta(ge=256)] = 2048
    threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    batch_tokens: Annotated[int, msgspec.Meta(ge=8, le=2048)] = 16
    repeat_penalty: Annotated[float, msgspec.Meta(ge=1, le=2)] = 1.0


class ChatServer(Protocol):
    """What is used of ``xllamacpp.Server``."""

    def handle_chat_completions(self, body: Any, on_piece: Callable[[Any], bool]) -> None:
        """Answer; returns when all is written, or when ``on_piece`` has returned True."""
        ...


class _Task:
    """A job in a slot."""

    def __init__(self, request: ChatRequest, slot: Slot, feed: OutputFeed) -> None:
        self.request = request
        self.slot = slot
        self.feed = feed
        self.reader = AnswerReader(request)


class LlamaCppRunner:
    """Writes answers."""

    def __init__(self, server: ChatServer, settings: LlamaCppSettings, wake: Wake) -> None:
        self.max_batch = settings.slots
        self._server = server
        self._settings = settings
        self._wake = wake
        self._slots = [Slot(index) for index in range(settings.slots)]
        self._uses = 0
        self._turns = [threading.Lock() for _ in self._slots]

    def warm_up(self) -> None:
        """Read and write a few tokens in every slot."""
        for slot in self._slots:
            feed = OutputFeed(lambda: None, capacity=_WARM_UP.max_tokens + 64)
            self._run(_Task(_WARM_UP, slot, feed))
            error = feed.take().error
            if error is not None:
                raise error

    def open(self, job: Job) -> None:
        """Nothing is taken before the prompt is there."""
        job.state = None

    def ready(self, job: Job) -> bool:
        """A prompt is waiting, or something was written."""
        task = cast("_Task | None", job.state)
        return bool(job.inputs) if task is None else task.feed.has_news()

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Begin what is new; hand out what has been written."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Stop writing. The slot is free at once: who comes next waits for the last token."""
        task = cast("_Task | None", job.state)
        if task is not None:
            task.feed.stop()
            task.slot.busy = False
            job.state = None

    def _step_one(self, job: Job) -> Step:
        task = cast("_Task | None", job.state)
        if task is not None:
            step = task.feed.take()
            if step.done and task.reader.written:
                answer = ChatMessage("assistant", "".join(task.reader.written))
                task.slot.cached = (*_read_by(task.request), answer)
            return step
        request = take_request(job)
        refuse_pictures(request)
        if request.adapter:
            raise no_adapter(request.adapter, ())
        slot = best_slot(self._slots, _read_by(request), self._uses)
        if slot is None:
            limit = len(self._slots)
            return Step(
                error=EngineError(f"{limit} answers are being written, the limit is {limit}")
            )
        self._uses += 1
        slot.used = self._uses
        slot.busy = True
        # What it will have read, at most; a cancelled task may leave less.
        slot.cached = _read_by(request)
        task = _Task(request, slot, OutputFeed(self._wake, capacity=request.max_tokens + 64))
        job.state = task
        threading.Thread(target=self._run, args=(task,), name="answer", daemon=True).start()
        return Step()

    def _run(self, task: _Task) -> None:
        """See to one task, in a thread of its own."""
        try:
            # The one before may need a moment more to stop.
            with self._turns[task.slot.index]:
                if not task.feed.stopped:
                    self._write(task)
        finally:
            task.feed.end(EngineError("the language model broke off"))

    def _write(self, task: _Task) -> None:
        only_read = task.request.max_tokens == 0

        def on_piece(raw: Any) -> bool:
            chunk = chunk_from(raw)
            error = chunk.failure("llama.cpp")
            if error is not None:
                task.feed.end(error)
                return True
            if not only_read:
                for output in task.reader.feed(chunk):
                    task.feed.put(output)
            elif (usage := chunk.token_usage()) is not None:
                task.feed.put(TokenUsage(usage.input_tokens, 0, usage.cached_tokens))
            return task.feed.stopped

        try:
            self._server.handle_chat_completions(self._body(task), on_piece)
        except ValueError as exc:
            refused = EngineError(
                "llama.cpp refuses the request", code=REQUEST_REFUSED, quote=str(exc)
            )
            task.feed.end(refused)
            return
        except EngineError as exc:
            task.feed.end(exc)
            return
        except RuntimeError as exc:
            task.feed.end(EngineError("llama.cpp failed", quote=str(exc)))
            return
        for output in task.reader.finish():
            task.feed.put(output)
        task.feed.end()

    def _body(self, task: _Task) -> dict[str, Any]:
        body: dict[str, Any] = msgspec.to_builtins(chat_body(held_to_calls(task.request)))
        body["id_slot"] = task.slot.index
        body["cache_prompt"] = True
        # The answer is looked at between two batches of the prompt, so that it can be stopped.
        body["return_progress"] = True
        body["repeat_penalty"] = self._settings.repeat_penalty
        # Who only reads ahead does not know yet that an answer comes next.
        body["add_generation_prompt"] = task.request.max_tokens > 0
        return body


def _read_by(request: ChatRequest) -> tuple[ChatMessage, ...]:
    """Return what a slot has to read: the functions stand before the conversation."""
    functions = request.tools.functions if request.tools.callable else ()
    offer = "".join(f"{each.name}{each.description}{each.parameters}" for each in functions)
    return (ChatMessage("system", offer), *request.messages)


def build(settings: LlamaCppSettings, wake: Wake) -> LlamaCppRunner:
    """Load a model."""
    return LlamaCppRunner(_load(settings), settings, wake)


def _load(settings: LlamaCppSettings) -> ChatServer:
    import xllamacpp

    if not Path(settings.model_path).is_file():
        raise ConfigError(
            f"there is no model at {settings.model_path}; `duologue models pull` fetches ours"
        )
    params = xllamacpp.CommonParams()
    params.model.path = settings.model_path
    params.n_ctx = settings.slots * settings.slot_tokens
    params.n_parallel = settings.slots
    params.n_batch = params.n_ubatch = settings.batch_tokens
    threads = settings.threads or min(8, os.cpu_count() or 1)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.fit_params = False
    # We choose slots ourselves, so nothing has to be copied between them.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.slot_prompt_similarity = 0.0
    # After the oldest exchanges were left out, the rest is moved, not read again.
    params.n_cache_reuse = settings.batch_tokens
    # A prompt that ends with the assistant's words is to be answered, not gone on with.
    params.prefill_assistant = False
    params.verbosity = 1
    with _signals_as_they_were(), _listening_to_nobody() as address:
        params.hostnames = [address]
        params.ui = False
        params.endpoint_slots = False
        try:
            return cast(ChatServer, xllamacpp.Server(params))
        except RuntimeError as exc:
            raise EngineError(f"llama.cpp cannot load {settings.model_path}: {exc}") from exc


@contextmanager
def _listening_to_nobody() -> Iterator[str]:
    """The library insists on serving HTTP: give it a socket that nobody can reach."""
    folder = tempfile.mkdtemp(prefix="duologue-llm-")
    try:
        yield f"{folder}/http.sock"
    finally:
        shutil.rmtree(folder)


@contextmanager
def _signals_as_they_were() -> Iterator[None]:
    """The library takes Ctrl-C and SIGTERM for itself: give them back, from whatever thread."""
    libc = ctypes.CDLL(None)
    numbers = (signal.SIGINT, signal.SIGTERM)
    saved = {number: ctypes.create_string_buffer(_SIGACTION_BYTES) for number in numbers}
    for number, action in saved.items():
        libc.sigaction(int(number), None, action)
    try:
        yield
    finally:
        for number, action in saved.items():
            libc.sigaction(int(number), action, None)


LLAMA_CPP = RunnerType(LlamaCppSettings, build, wakes_itself=True, sleep_levels=(2,))
