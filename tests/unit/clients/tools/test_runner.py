from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest_asyncio
from structlog.testing import capture_logs

from duologue.clients.tools.calls import RunTool
from duologue.clients.tools.function import Tool, ToolContext
from duologue.clients.tools.runner import ToolRunner
from tests.patience import PATIENCE_S

AT_ONCE_S = 1e-3


class Scene:
    """A runner, the tasks that it starts, and the outputs that it hands in."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.outputs: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.tasks: list[asyncio.Task[None]] = []
        self._group = group
        self.runner = ToolRunner(self._start, lambda *told: self.outputs.put_nowait(told))

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=name)
        self.tasks.append(task)
        return task

    async def call(self, tool: Tool, arguments: str = "{}") -> str:
        self.runner.run(RunTool(tool.name, "c1", "resp_1", arguments), tool)
        call_id, output = await self.outputs.get()
        assert call_id == "c1"
        return output


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        scene = Scene(group)
        yield scene
        for task in scene.tasks:
            task.cancel()


async def test_a_function_runs_in_a_thread_of_its_own_and_an_async_one_on_the_loop(
    scene: Scene,
) -> None:
    def where() -> str:
        return threading.current_thread().name

    async def here() -> str:
        return threading.current_thread().name

    assert await scene.call(Tool(where)) == "duologue-tool-where"
    assert await scene.call(Tool(here)) == threading.current_thread().name


async def test_arguments_and_results_travel_as_json(scene: Scene) -> None:
    def add(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    assert await scene.call(Tool(add), '{"a":2}') == '{"sum":3}'


async def test_wrong_arguments_run_nothing(scene: Scene) -> None:
    ran = []

    def add(a: int) -> None:
        ran.append(a)

    assert "missing required field" in await scene.call(Tool(add))
    assert ran == []


async def test_what_a_function_raises_is_told_to_the_model(scene: Scene) -> None:
    def fail() -> None:
        raise ValueError("no such city")

    async def fail_quietly() -> None:
        raise KeyError

    with capture_logs() as logs:
        assert await scene.call(Tool(fail)) == '{"error":"ValueError: no such city"}'
        assert await scene.call(Tool(fail_quietly)) == '{"error":"KeyError"}'
    assert [(log["event"], log["tool"]) for log in logs] == [
        ("tool_failed", "fail"),
        ("tool_failed", "fail_quietly"),
    ]


async def test_a_result_that_is_no_json_is_told_to_the_model(scene: Scene) -> None:
    assert "no JSON" in await scene.call(Tool(lambda: object(), name="odd"))


async def test_c64_a_thread_that_takes_too_long_is_left_and_its_late_result_dropped(
    scene: Scene,
) -> None:
    release = threading.Event()

    def slow() -> str:
        release.wait()
        return "late"

    with capture_logs() as logs:
        output = await scene.call(Tool(slow, timeout_s=AT_ONCE_S))
        assert output == '{"error":"slow has not finished within 0.001 s; its result is lost"}'
        release.set()
        await asyncio.to_thread(_join, "duologue-tool-slow")
        for _ in range(3):  # the result was handed over before; its callback needs a turn
            await asyncio.sleep(0)
    assert [log["event"] for log in logs] == ["tool_timed_out", "tool_result_late"]
    assert scene.outputs.empty()


def _join(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(5)


async def test_a_task_that_takes_too_long_is_cancelled(scene: Scene) -> None:
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    assert "has not finished" in await scene.call(Tool(slow, timeout_s=AT_ONCE_S))
    await cancelled.wait()


async def test_a_function_sees_the_context_variables_of_the_program(scene: Scene) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("the person")
    assert await scene.call(Tool(lambda: who.get(), name="ask")) == "the person"


async def test_a_thread_can_wait_for_the_loop_and_the_loop_must_not(scene: Scene) -> None:
    async def work() -> str:
        return "from the loop"

    def in_thread(context: ToolContext) -> str:
        return context.run(work())

    async def on_loop(context: ToolContext) -> str:
        return context.run(work())

    assert await scene.call(Tool(in_thread)) == "from the loop"
    assert "await it instead" in await scene.call(Tool(on_loop))


def test_a_result_that_comes_after_the_loop_has_gone_is_nobodys() -> None:
    release, ended = threading.Event(), threading.Event()

    def slow() -> None:
        release.wait()
        ended.set()

    async def hold_call() -> None:
        async with asyncio.TaskGroup() as group:
            scene = Scene(group)
            await scene.call(Tool(slow, timeout_s=AT_ONCE_S))

    asyncio.run(hold_call())
    release.set()
    assert ended.wait(PATIENCE_S)
    _join("duologue-tool-slow")
