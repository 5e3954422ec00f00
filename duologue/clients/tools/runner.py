"""Runs functions beside a call: in threads and tasks, each within its time-out.

A thread that takes too long cannot be stopped: the model is told, the call goes on, and what comes
later is dropped and logged. This module must not know when an answer is asked for.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from duologue.clients.tools.calls import RunTool
from duologue.clients.tools.function import (
    BadArguments,
    BadResult,
    Tool,
    ToolContext,
    problem,
    written,
)
from duologue.core.tasks import CrashBarrier
from duologue.telemetry import get_logger

T = TypeVar("T")

StartTask = Callable[[str, Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Starts a task of the call's own, by a name."""

Finished = Callable[[str, str], object]
"""Takes a call's id and its output."""


@dataclass(frozen=True, slots=True)
class _Returned:
    value: object


@dataclass(frozen=True, slots=True)
class _Raised:
    error: Exception


_Outcome: TypeAlias = _Returned | _Raised


class ToolRunner:
    """The functions of one call.

    Args:
        start: Owns the tasks: they end with the call.
        finished: Told of each output, on the loop.

    Concurrency:
        Belongs to the event loop; functions run beside it.
    """

    def __init__(self, start: StartTask, finished: Finished) -> None:
        self._start = start
        self._finished = finished
        self._log = get_logger("client")

    def run(self, call: RunTool, tool: Tool) -> None:
        """Run a function; its output, or what went wrong, is handed to ``finished``."""
        loop = asyncio.get_running_loop()
        context = ToolContext(call.call_id, call.response_id, _waiter(loop))
        try:
            arguments = tool.arguments(call.arguments, context)
        except BadArguments as exc:
            self._log.warning("tool_arguments_refused", tool=tool.name)
            self._finished(call.call_id, problem(str(exc)))
            return
        outcome: asyncio.Future[_Outcome] = loop.create_future()
        stop: Callable[[], object] = _let_go
        if tool.is_async:
            task = self._start(f"tool-{tool.name}", _await(tool, arguments, outcome))
            stop = task.cancel
        else:
            _start_thread(tool, arguments, outcome, loop)
        self._start(f"tool-watch-{tool.name}", self._watch(call, tool, outcome, stop))

    async def _watch(
        self,
        call: RunTool,
        tool: Tool,
        outcome: asyncio.Future[_Outcome],
        stop: Callable[[], object],
    ) -> None:
        await asyncio.wait((outcome,), timeout=tool.timeout_s)
        if outcome.done():
            self._finished(call.call_id, self._told(tool, outcome.result()))
            return
        self._log.warning("tool_timed_out", tool=tool.name, timeout_s=tool.timeout_s)
        outcome.add_done_callback(lambda _: self._log.warning("tool_result_late", tool=tool.name))
        late = f"{tool.name} has not finished within {tool.timeout_s:g} s; its result is lost"
        self._finished(call.call_id, problem(late))
        stop()

    def _told(self, tool: Tool, outcome: _Outcome) -> str:
        if isinstance(outcome, _Raised):
            error = outcome.error
            self._log.warning("tool_failed", tool=tool.name, exc_info=error)
            said = str(error)
            return problem(f"{type(error).__name__}: {said}" if said else type(error).__name__)
        try:
            return written(outcome.value)
        except BadResult as exc:
            self._log.warning("tool_result_refused", tool=tool.name)
            return problem(f"{tool.name}: {exc}")


async def _await(tool: Tool, arguments: dict[str, Any], outcome: asyncio.Future[_Outcome]) -> None:
    with CrashBarrier(lambda error: _settle(outcome, _Raised(error))):
        _settle(outcome, _Returned(await tool.function(**arguments)))


def _start_thread(
    tool: Tool,
    arguments: dict[str, Any],
    outcome: asyncio.Future[_Outcome],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Run a function in a thread of its own.

    In a pool, one that hangs would keep others waiting, and the end of the loop. It is a daemon:
    one that never returns must not keep the program from ending.
    """

    def settle(result: _Outcome) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            loop.call_soon_threadsafe(_settle, outcome, result)

    def work() -> None:
        with CrashBarrier(lambda error: settle(_Raised(error))):
            settle(_Returned(tool.function(**arguments)))

    seen = contextvars.copy_context()
    threading.Thread(
        target=seen.run, args=(work,), name=f"duologue-tool-{tool.name}", daemon=True
    ).start()


def _settle(outcome: asyncio.Future[_Outcome], result: _Outcome) -> None:
    if not outcome.done():
        outcome.set_result(result)


def _let_go() -> None:
    """A thread cannot be stopped."""


def _waiter(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Return what lets a thread wait for the loop."""

    def wait(work: Coroutine[Any, Any, T]) -> T:
        if _is_on(loop):
            work.close()
            raise RuntimeError("this function is on the event loop: await it instead")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    return wait


def _is_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
