"""Function calls of one answer, as they are written, and how the answer ends with them.

Calls are made whole, after all else was said: half a call is of no use to anybody, and the client
may ask for the next answer as soon as it has run them. This module must not know who writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from duologue.duplex_plugins.contract import (
    CallFunction,
    EndResponse,
    PluginEffect,
    ResponseOutcome,
)
from duologue.engines.payloads import TokenUsage, ToolCallDelta, Tools

LENGTH_LIMIT = "max_output_tokens"
BAD_CALL = "tool_call_invalid"
"""The model called a function that there is not, or with arguments that are no JSON object."""


@dataclass(slots=True)
class _Call:
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        """Tell whether its arguments are a JSON object."""
        try:
            return isinstance(json.loads(self.arguments or "{}"), dict)
        except (ValueError, RecursionError):
            return False


class FunctionCalls:
    """Those of one answer."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}

    def add(self, piece: ToolCallDelta) -> None:
        """Take the next piece of one."""
        call = self._calls.setdefault(piece.index, _Call())
        call.name += piece.name
        call.arguments += piece.arguments

    def end(
        self, response_id: str, tools: Tools, usage: TokenUsage | None, max_tokens: int
    ) -> Iterator[PluginEffect]:
        """Make the calls, and end the response.

        Args:
            tools: What may be called.
            max_tokens: What the model was allowed; reaching it makes the answer incomplete.
        """
        cut = usage is not None and (usage.cut or usage.output_tokens >= max_tokens)
        calls = list(self._calls.values()) if tools.callable else []
        if cut and calls and not calls[-1].is_whole():
            calls.pop()
        if not all(call.is_whole() and tools.allows(call.name) for call in calls):
            yield EndResponse(response_id, ResponseOutcome.FAILED, BAD_CALL, usage)
            return
        for number, call in enumerate(calls if tools.parallel else calls[:1]):
            yield CallFunction(response_id, str(number), call.name, call.arguments or "{}")
        if cut:
            yield EndResponse(response_id, ResponseOutcome.INCOMPLETE, LENGTH_LIMIT, usage)
        else:
            yield EndResponse(response_id, usage=usage)
