"""The functions of one call, from the model's call to the output: what is known, and who runs it.

This module must not know how events and commands travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duologue.clients.effects import Send
from duologue.clients.machine import EventOrUnknown
from duologue.clients.tools.calls import RunTool, ToolCalls, ToolEffect
from duologue.clients.tools.function import Tool, ToolLike, as_tool
from duologue.clients.tools.runner import StartTask, ToolRunner
from duologue.core.errors import ConfigError
from duologue.core.ids import IdMaker

Perform = Callable[[Sequence[Send]], object]
"""Sends commands."""


class ToolDesk:
    """A call that has no functions costs a comparison for each event.

    Args:
        perform: Sends outputs, and requests for answers.
        start: Owns the tasks in which functions run.
    """

    def __init__(self, perform: Perform, start: StartTask, new_id: IdMaker) -> None:
        self._perform = perform
        self._new_id = new_id
        self._tools: dict[str, Tool] = {}
        self._calls: ToolCalls | None = None
        self._runner = ToolRunner(start, self._finished)

    def use(self, given: Sequence[ToolLike]) -> None:
        """Run these functions when the model calls them, and no others any more.

        Raises:
            ConfigError: One cannot be a tool, or two have the same name.
        """
        tools = [tool for tool in map(as_tool, given) if isinstance(tool, Tool)]
        named = {tool.name: tool for tool in tools}
        if len(named) < len(tools):
            raise ConfigError("two tools have the same name; give one with Tool(function, name=)")
        self._tools = named
        if self._calls is None and tools:
            self._calls = ToolCalls((), self._new_id)
        if self._calls is not None:
            self._calls.names = named.keys()

    def answers(self, name: str) -> bool:
        """Tell whether calls of a function get their output here, and not from the program."""
        return self._calls is not None and self._calls.answers(name)

    def on_event(self, event: EventOrUnknown) -> None:
        """Take an event of the server."""
        if self._calls is not None:
            self._do(self._calls.on_event(event))

    def _finished(self, call_id: str, output: str) -> None:
        if self._calls is not None:
            self._do(self._calls.finished(call_id, output))

    def _do(self, effects: Sequence[ToolEffect]) -> None:
        for effect in effects:
            if isinstance(effect, RunTool):
                self._runner.run(effect, self._tools[effect.name])
            else:
                self._perform((effect,))
