"""Which functions the model has called, which outputs it has seen, and when to ask it to go on.

Events in, effects out; no function runs here. One answer is asked for after the last output of a
response's calls, once nobody speaks and no answer is being made, and only if no other answer has
seen the outputs meanwhile. This module must not know Python functions, threads or time.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from duologue.clients.effects import Send
from duologue.clients.machine import EventOrUnknown
from duologue.clients.tools.function import problem
from duologue.core.ids import IdMaker
from duologue.protocol.commands import CreateItem, CreateResponse
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCleared,
    AudioCommitted,
    ErrorEvent,
    ItemAdded,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
)
from duologue.protocol.items import FunctionCallItem, FunctionCallOutputItem
from duologue.protocol.response_events import OutputItemDone, ResponseCreated, ResponseDone
from duologue.protocol.session_config import SessionResource

MAX_RUNNING = 16
"""Calls that may run at once; a further one is refused, which the model is told."""


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run a function, then call ``ToolCalls.finished``."""

    name: str
    call_id: str
    response_id: str
    arguments: str


ToolEffect: TypeAlias = Send | RunTool


@dataclass(slots=True)
class _Batch:
    """The calls of one response.

    Args:
        running: Ids of the calls that have no output yet.
        ended: The response can make no more calls.
    """

    running: set[str] = field(default_factory=set)
    ended: bool = False

    @property
    def is_complete(self) -> bool:
        return self.ended and not self.running


@dataclass(slots=True)
class _Output:
    """An output that no answer has seen.

    Args:
        arrived: The server has it: answers that begin from now on see it.
    """

    batch: _Batch
    arrived: bool = False


class ToolCalls:
    """The calls of one conversation.

    Args:
        names: The functions there are; calls of others that the session offers are the program's
            own.
    """

    def __init__(self, names: Collection[str], new_id: IdMaker) -> None:
        self.names = names
        self._new_id = new_id
        self._offered: frozenset[str] = frozenset()
        self._batches: dict[str, _Batch] = {}
        self._running: dict[str, _Batch] = {}
        self._seen: set[str] = set()
        """Calls of the responses that go on."""
        self._unseen: dict[str, _Output] = {}
        self._commands: dict[str, str] = {}
        """Outputs on their way, by the id of their command."""
        self._active: set[str] = set()
        self._person_speaks = False
        self._asked: str | None = None
        self._tells_conversations = False

    @property
    def running(self) -> int:
        """How many calls have no output yet."""
        return len(self._running)

    def answers(self, name: str) -> bool:
        """Tell whether calls of a function get their output here, and not from the program."""
        return name in self.names or name not in self._offered

    def is_running(self, call_id: str) -> bool:
        """Tell whether a call has no output yet."""
        return call_id in self._running

    def on_event(self, event: EventOrUnknown) -> list[ToolEffect]:
        """Take an event of the server."""
        match event:
            case OutputItemDone(response_id=response_id, item=FunctionCallItem() as item):
                return [*self._called(item, response_id), *self._ask_if_due()]
            case ResponseCreated(response=response):
                self._begun(response.id, response.conversation_id)
            case ResponseDone(response=response):
                self._ended(response.id)
            case ItemAdded(item=FunctionCallOutputItem(id=item_id)):
                self._arrived(item_id)
            case SpeechStarted():
                self._person_speaks = True
            case SpeechStopped() | AudioCommitted() | AudioCleared():
                self._person_speaks = False
            case ErrorEvent(error=error) if error.event_id is not None:
                self._refused(error.event_id, error.code)
            case SessionCreated(session=SessionResource(tools=tools)):
                self._offered = frozenset(tool.name for tool in tools)
            case SessionUpdated(session=SessionResource(tools=tools)):
                self._offered = frozenset(tool.name for tool in tools)
            case _:
                return []
        return self._ask_if_due()

    def finished(self, call_id: str, output: str) -> list[ToolEffect]:
        """Hand in the output of a call; of one that has its output already, nothing comes."""
        batch = self._running.pop(call_id, None)
        if batch is None:
            return []
        batch.running.discard(call_id)
        return [self._output(call_id, output, batch), *self._ask_if_due()]

    def _called(self, item: FunctionCallItem, response_id: str) -> list[ToolEffect]:
        if item.status != "completed" or item.call_id in self._seen:
            return []
        if not self.answers(item.name):
            return []
        batch = self._batches.get(response_id)
        if batch is None:
            # A response that is over has no more calls than this one.
            batch = _Batch(ended=response_id not in self._active)
            if not batch.ended:
                self._batches[response_id] = batch
        self._seen.add(item.call_id)
        if item.name not in self.names:
            there_are = ", ".join(sorted(self.names)) or "none"
            message = f"there is no function {item.name[:64]}; there are: {there_are}"
            return [self._output(item.call_id, problem(message), batch)]
        if len(self._running) >= MAX_RUNNING:
            message = f"{MAX_RUNNING} functions are running already; try again later"
            return [self._output(item.call_id, problem(message), batch)]
        batch.running.add(item.call_id)
        self._running[item.call_id] = batch
        return [RunTool(item.name, item.call_id, response_id, item.arguments)]

    def _output(self, call_id: str, text: str, batch: _Batch) -> Send:
        item_id, command_id = self._new_id("item"), self._new_id("tool")
        self._unseen[item_id] = _Output(batch)
        self._commands[command_id] = item_id
        item = FunctionCallOutputItem(id=item_id, call_id=call_id, output=text)
        return Send(CreateItem(event_id=command_id, item=item))

    def _begun(self, response_id: str, conversation_id: str | None) -> None:
        self._active.add(response_id)
        self._tells_conversations = self._tells_conversations or conversation_id is not None
        if self._tells_conversations and conversation_id is None:
            return  # it sees what its own input says
        self._person_speaks = False
        self._asked = None
        for item_id in [each for each, output in self._unseen.items() if output.arrived]:
            del self._unseen[item_id]

    def _ended(self, response_id: str) -> None:
        self._active.discard(response_id)
        batch = self._batches.pop(response_id, None)
        if batch is not None:
            batch.ended = True
        if not self._batches and not self._running:
            self._seen.clear()

    def _arrived(self, item_id: str) -> None:
        output = self._unseen.get(item_id)
        if output is not None:
            output.arrived = True
        for command_id in [each for each, item in self._commands.items() if item == item_id]:
            del self._commands[command_id]

    def _refused(self, command_id: str, code: str | None) -> None:
        item_id = self._commands.pop(command_id, None)
        if item_id is not None:
            # The call is not in the conversation any more: nobody waits for its output.
            self._unseen.pop(item_id, None)
        if command_id != self._asked:
            return
        self._asked = None
        if code != ErrorCode.RESPONSE_ACTIVE or not self._active:
            # It would be refused again.
            self._unseen = {k: v for k, v in self._unseen.items() if not v.batch.is_complete}

    def _ask_if_due(self) -> list[ToolEffect]:
        if self._asked is not None or self._active or self._person_speaks:
            return []
        if not any(output.batch.is_complete for output in self._unseen.values()):
            return []
        self._asked = self._new_id("ask")
        return [Send(CreateResponse(event_id=self._asked))]
