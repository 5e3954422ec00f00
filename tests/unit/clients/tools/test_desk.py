from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import pytest
import pytest_asyncio

from duologue.clients.effects import Send
from duologue.clients.tools.desk import ToolDesk
from duologue.core.errors import ConfigError
from duologue.core.ids import id_maker
from duologue.protocol.commands import Command, CreateItem, CreateResponse
from duologue.protocol.items import FunctionCallItem, FunctionCallOutputItem
from duologue.protocol.response_events import OutputItemDone
from duologue.protocol.session_config import FunctionTool
from tests.fakes.server import FakeAnswer


class Scene:
    """A desk, and what it sends."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.sent: asyncio.Queue[Command] = asyncio.Queue()
        self._group = group
        self.desk = ToolDesk(self._perform, self._start, id_maker())

    def _perform(self, effects: Sequence[Send]) -> None:
        for effect in effects:
            self.sent.put_nowait(effect.command)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.create_task(work, name=name)


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        yield Scene(group)


async def test_a_call_is_run_and_its_output_and_one_request_are_sent(scene: Scene) -> None:
    async def double(number: int) -> int:
        return 2 * number

    scene.desk.use([double])
    answer = FakeAnswer("a")
    call = FunctionCallItem(name="double", call_id="c1", arguments='{"number":4}')
    scene.desk.on_event(answer.created())
    scene.desk.on_event(OutputItemDone(response_id=answer.response_id, output_index=0, item=call))
    scene.desk.on_event(answer.done())
    output, request = await scene.sent.get(), await scene.sent.get()
    assert isinstance(output, CreateItem)
    assert isinstance(output.item, FunctionCallOutputItem)
    assert (output.item.call_id, output.item.output) == ("c1", "8")
    assert isinstance(request, CreateResponse)


async def test_without_functions_nothing_is_looked_at(scene: Scene) -> None:
    scene.desk.use([FunctionTool(name="bare")])
    call = FunctionCallItem(name="bare", call_id="c1")
    scene.desk.on_event(OutputItemDone(response_id="r", output_index=0, item=call))
    assert scene.sent.empty()
    assert not scene.desk.answers("bare")


async def test_functions_can_be_replaced_and_names_are_unique(scene: Scene) -> None:
    def look() -> None: ...

    def go() -> None: ...

    scene.desk.use([look])
    scene.desk.use([go])
    assert scene.desk.answers("go")
    with pytest.raises(ConfigError, match="same name"):
        scene.desk.use([look, look])
    assert scene.desk.answers("go")
