"""The shell around a call machine: a transport, its tasks, and time.

Carries events in and commands out, performs the machine's effects, and ends everything when one
side is gone. Nothing in here decides what an event means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from duologue.clients.devices import Device
from duologue.clients.effects import ClientEffect, Send
from duologue.clients.errors import (
    CallEnded,
    CallError,
    ConnectionLost,
    NotRealtimeServer,
    SendBufferFull,
    ServerSilent,
)
from duologue.clients.event_stream import EventStreams
from duologue.clients.machine import CallMachine, EventOrUnknown
from duologue.clients.outbox import Outbox
from duologue.clients.playback import RATE_HZ, ClockSpeaker, Playback, Taken
from duologue.clients.replies import Pick, Replies
from duologue.clients.responses import Responses
from duologue.clients.tools.calls import RunTool, ToolCalls, ToolEffect
from duologue.clients.tools.function import Tool, ToolLike, as_tool
from duologue.clients.tools.runner import ToolRunner
from duologue.clients.transports.base import OpenTransport, Received, Transport
from duologue.codecs.encoder import OutputEncoder
from duologue.core.clock import Clock
from duologue.core.errors import ConfigError, ProtocolError
from duologue.core.ids import IdMaker
from duologue.core.tasks import guard
from duologue.protocol.audio_formats import (
    AudioFormat,
    PcmFormat,
    format_rate_hz,
    format_sample_bytes,
)
from duologue.protocol.commands import AppendAudio, Command, UpdateSession
from duologue.protocol.events import SessionCreated, SessionUpdated
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.telemetry import get_logger

T = TypeVar("T")
E = TypeVar("E")

_LISTENING_STEP_S = 0.02
"""How often a condition on what was heard is looked at, in a call without a device."""

_NATIVE = PcmFormat(rate=24000)


class Connection:
    """One call, from its connection to its end; also the ``DevicePort`` of its device.

    Args:
        timeout_s: How long the server may take to answer a command.
        new_id: Makes the ids of what this client puts into the conversation.
    """

    rate_hz = RATE_HZ

    def __init__(
        self,
        open_transport: OpenTransport,
        device: Device | None,
        clock: Clock,
        timeout_s: float,
        new_id: IdMaker,
    ) -> None:
        self.machine = CallMachine(Playback(RATE_HZ))
        self.streams = EventStreams()
        self.replies = Replies()
        self.outbox = Outbox()
        self.ended: CallError | None = None
        """Why the call is over."""

        self.crash: Exception | None = None
        """A fault of the client's own, or of its device's."""

        self._open_transport = open_transport
        self._device = device
        self._speaker = None if device else ClockSpeaker(self.machine.playback)
        self._now = clock.now
        self._timeout_s = timeout_s
        self._input_format: AudioFormat = _NATIVE
        self._encoder = OutputEncoder(RATE_HZ, _NATIVE)
        self._commands = 0
        self._news = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: Transport | None = None
        self._log = get_logger("client")
        self._new_id = new_id
        self._responses: Responses | None = None
        self._tools: dict[str, Tool] = {}
        self._calls: ToolCalls | None = None
        self._runner = ToolRunner(self.start, self._tool_finished)

    @property
    def responses(self) -> Responses:
        """The answers, which are collected from the first look at them on."""
        if self._responses is None:
            self._responses = Responses(RATE_HZ, self.streams.past)
            if self.ended is not None:
                self._responses.end(_as_end(self.ended))
        return self._responses

    def answers_call(self, name: str) -> bool:
        """Tell whether calls of a function get their output here, and not from the program."""
        return self._calls is not None and self._calls.answers(name)

    def use_tools(self, given: Sequence[ToolLike]) -> None:
        """Run these functions when the model calls them, and no others any more.

        Raises:
            ConfigError: One cannot be a tool, or two have the same name.
        """
        tools = [tool for tool in map(as_tool, given) if isinstance(tool, Tool)]
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ConfigError("two tools have the same name; give one with Tool(function, name=)")
        if self._calls is None and tools:
            self._calls = ToolCalls((), self._new_id)
        if self._calls is not None:
            self._calls.names = self._tools.keys()

    async def begin(self, opening: SessionPatch | None = None) -> None:
        """Connect, wait for the server's greeting, and settle what the session is to be.

        Raises:
            CommandRefused: The server does not accept a value of the opening.
            DuologueError: There is no call; ``clients.errors`` lists why that may be.
        """
        self._transport = transport = await self._open_transport()
        await self._group.__aenter__()
        try:
            self.start("client-reader", self._read(transport))
            self.start("client-writer", self._write(transport))
            greeting = self.replies.wait((), one_of(SessionCreated))
            await self.in_time(greeting, "the connection", NotRealtimeServer)
            if opening is not None:
                await self.ask((UpdateSession(session=opening),), one_of(SessionUpdated))
            if self._device is not None:
                self.start("client-device", self._device.run(self))
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """End the call and everything that runs for it."""
        await self.hang_up()
        for task in tuple(self._tasks):
            task.cancel()
        await self._group.__aexit__(None, None, None)

    async def hang_up(self) -> None:
        """End the call."""
        self._end(CallEnded("the call is over"))
        if self._transport is not None:
            await self._transport.close()

    # Commands

    def send(self, command: Command) -> str | None:
        """Send a command; returns the id that an error in answer to it will name.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        if self.ended is not None:
            raise self.ended
        if command.event_id is None and not isinstance(command, AppendAudio):
            self._commands += 1
            command = msgspec.structs.replace(command, event_id=f"client_{self._commands}")
        self.outbox.put(command)
        if isinstance(command, AppendAudio):
            self.machine.sent_audio(self._duration_s(command.audio), self._now())
        return command.event_id

    async def ask(self, commands: Sequence[Command], pick: Pick[T]) -> T:
        """Send commands and wait for the event that answers the last one.

        Raises:
            CommandRefused: The server refuses one of them.
            CallError: The call ends first, or the server says nothing.
        """
        ids = [sent for command in commands if (sent := self.send(command)) is not None]
        name = str(commands[-1].__struct_config__.tag)
        return await self.in_time(self.replies.wait(ids, pick), name)

    async def in_time(
        self, reply: Awaitable[T], what: str, error: type[CallError] = ServerSilent
    ) -> T:
        """Wait for a reply, within the time-out."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await reply
        except TimeoutError as exc:
            raise error(f"the server has not answered {what} for {self._timeout_s:g} s") from exc

    # DevicePort

    @property
    def has_speech(self) -> bool:
        """There is something to play."""
        return self.machine.playback.waiting_samples > 0

    def send_audio(self, pcm: bytes) -> None:
        """Send what was said, in the session's format.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        is_native = self._input_format == _NATIVE
        self.send(AppendAudio(audio=pcm if is_native else self._encoder.encode(pcm)))

    def take_audio(self, samples: int) -> Taken:
        """Return what is to be played next."""
        taken = self.machine.take(samples, self._now())
        self._news.set()
        return taken

    # Time

    def listen(self) -> None:
        """Without a device, what was due until now counts as heard."""
        if self._speaker is None:
            return
        now = self._now()
        began_at = self._speaker.played_until or now
        self.machine.played(self._speaker.let_pass(now), began_at)

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait for something about the call to become true.

        Raises:
            TimeoutError: It did not.
            CallError: The call ended first.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                self.listen()
                if condition():
                    return
                if self.ended is not None:
                    raise self.ended
                self._news.clear()
                await self._next_news()

    async def _next_news(self) -> None:
        if self._speaker is None or not self.has_speech:
            await self._news.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTENING_STEP_S):
                await self._news.wait()

    # The machine's shell

    def perform(self, effects: Sequence[ClientEffect]) -> list[str]:
        """Do what the machine wants; returns the ids of the commands that were sent."""
        ids: list[str] = []
        for effect in effects:
            if not isinstance(effect, Send):
                unplayed = 0 if self._device is None else self._device.silence()
                ids += self.perform(self.machine.silenced(unplayed))
                continue
            try:
                ids.append(self.send(effect.command) or "")
            except SendBufferFull as exc:
                self._end(ConnectionLost(f"the server reads nothing: {exc.message}"))
            except CallError:
                # Nobody is left to be told.
                break
        return ids

    async def _read(self, transport: Transport) -> None:
        while True:
            try:
                received = await transport.receive()
            except ProtocolError as exc:
                if self.machine.session is None:
                    raise NotRealtimeServer(
                        f"the server's first message is not of this dialect: {exc.message}"
                    ) from exc
                self._log.warning("unreadable_event", param=exc.param)
                continue
            self._apply(received)

    async def _write(self, transport: Transport) -> None:
        while True:
            await transport.send(await self.outbox.take())

    def _apply(self, received: Received) -> None:
        event = received.event
        self.listen()
        self.perform(self.machine.on_event(event, received.seq, self._now()))
        if isinstance(event, SessionCreated | SessionUpdated):
            self._follow_format(event.session)
        self.streams.put(event)
        if self._responses is not None:
            self._responses.put(event)
        self.replies.offer(event)
        if self._calls is not None:
            self._perform_calls(self._calls.on_event(event))
        self._news.set()

    def _follow_format(self, session: AnySession) -> None:
        wanted = session.audio.input.format
        if wanted != self._input_format:
            self._input_format = wanted
            self._encoder = OutputEncoder(RATE_HZ, wanted)

    def _duration_s(self, wire: bytes) -> float:
        samples = len(wire) / format_sample_bytes(self._input_format)
        return samples / format_rate_hz(self._input_format)

    # Functions

    def _perform_calls(self, effects: Sequence[ToolEffect]) -> None:
        for effect in effects:
            if isinstance(effect, RunTool):
                self._runner.run(effect, self._tools[effect.name])
            else:
                self.perform((effect,))

    def _tool_finished(self, call_id: str, output: str) -> None:
        if self._calls is not None:
            self._perform_calls(self._calls.finished(call_id, output))
            self._news.set()

    # Life

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the call; the call ends if it fails."""
        task = self._group.create_task(guard(work, self._crashed), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _crashed(self, exc: Exception) -> None:
        if isinstance(exc, CallError):
            self._end(exc)
            return
        self.crash = exc
        self._end(CallEnded("the client failed", close_code=1011))

    def _end(self, error: CallError) -> None:
        if self.ended is not None:
            return
        self.ended = error
        self.outbox.close()
        self.replies.end(error)
        self.streams.end(_as_end(error))
        if self._responses is not None:
            self._responses.end(_as_end(error))
        self._news.set()


def _as_end(error: CallError) -> CallError | None:
    """What readers of events get: nothing special where one side hung up."""
    return None if isinstance(error, CallEnded) and error.is_normal else error


def one_of(kind: type[E], matches: Callable[[E], bool] | None = None) -> Pick[E]:
    """Return a ``Pick`` for events of one kind."""

    def pick(event: EventOrUnknown) -> E | None:
        if not isinstance(event, kind) or (matches is not None and not matches(event)):
            return None
        return event

    return pick
