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

from duologue.clients.arguments import checked_pcm
from duologue.clients.devices import Device
from duologue.clients.duplex_duties import INTERVAL_S, DuplexDuties
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
from duologue.clients.reconnect.events import Reconnected, Reconnecting
from duologue.clients.reconnect.transport import ReconnectingTransport
from duologue.clients.replies import Pick, Replies
from duologue.clients.responses import Responses
from duologue.clients.tools.desk import ToolDesk
from duologue.clients.transports.base import OpenTransport, Received, Transport
from duologue.clients.waits import Waits
from duologue.codecs.encoder import OutputEncoder, output_encoder
from duologue.codecs.wire_length import wire_seconds
from duologue.core.clock import Clock
from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.core.ids import IdMaker
from duologue.core.tasks import guard
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import AudioFormat, PcmFormat
from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.duplex.commands import CloseSession
from duologue.protocol.duplex.events import SessionClosed, SessionResumed
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import SessionCreated, SessionUpdated
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.telemetry import get_logger

T = TypeVar("T")
E = TypeVar("E")

_LISTENING_STEP_S = 0.02
"""How often a condition on what was heard is looked at, in a call without a device."""

GOODBYE_S = 2.0
"""How long the server may take to close the session, where it is asked to."""

_NATIVE = PcmFormat(rate=24000)


class Connection:
    """One call, from its connection to its end; also the ``DevicePort`` of its device.

    Args:
        timeout_s: How long the server may take to answer a command.
        new_id: Makes the ids of what this client puts into the conversation.
        speaks_first: The server says nothing before it is told what the session is to be.
    """

    rate_hz = RATE_HZ

    def __init__(
        self,
        open_transport: OpenTransport,
        device: Device | None,
        clock: Clock,
        timeout_s: float,
        new_id: IdMaker,
        speaks_first: bool = False,
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
        self._waits = Waits(timeout_s)
        self._input_format: AudioFormat = _NATIVE
        self._encoder: OutputEncoder = output_encoder(RATE_HZ, _NATIVE)
        self._commands = 0
        self._news = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: Transport | None = None
        self._log = get_logger("client")
        self._speaks_first = speaks_first
        self._duties: DuplexDuties | None = None
        self.reconnecting = False
        """There is no connection, and another one is on its way."""

        self._responses: Responses | None = None
        self.tools = ToolDesk(self.perform, self.start, new_id)

    @property
    def responses(self) -> Responses:
        """The answers, which are collected from the first look at them on."""
        if self._responses is None:
            self._responses = Responses(
                RATE_HZ, self.streams.past, server_plays=self.machine.server_plays
            )
            if self.ended is not None:
                self._responses.end(_as_end(self.ended))
        return self._responses

    async def begin(self, opening: SessionPatch | None = None) -> None:
        """Connect, wait for the server's greeting, and settle what the session is to be.

        Raises:
            CommandRefused: The server does not accept a value of the opening.
            DuologueError: There is no call; ``clients.errors`` lists why that may be.
        """
        self._transport = transport = await self._open_transport()
        self.machine.server_plays = transport.server_plays
        await self._group.__aenter__()
        try:
            self.start("client-reader", self._read(transport))
            self.start("client-writer", self._write(transport))
            await self._be_greeted(opening)
            if opening is not None and not self._speaks_first:
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
        if self._duties is not None and self.ended is None and not self.reconnecting:
            await self._say_goodbye()
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
        if self._duties is not None:
            self._duties.spoke(self._now())
        if isinstance(command, AppendAudio):
            duration_s = wire_seconds(command.audio, self._input_format)
            self.machine.sent_audio(duration_s, self._now())
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
            return await self._waits.run(reply)
        except TimeoutError as exc:
            waited_s = self._waits.timeout_s
            raise error(f"the server has not answered {what} for {waited_s:g} s") from exc

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
            TypeError: It is no bytes.
        """
        pcm = checked_pcm(pcm)
        is_native = self._input_format == _NATIVE
        wire = pcm if is_native else self._encoder.encode(pcm)
        if self._duties is None:
            self.send(AppendAudio(audio=wire))
        else:
            start = self._duties.place(wire, self._input_format)
            self.send(AppendPlacedAudio(audio=wire, start_sample=start))

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
        if self._duties is not None:
            if isinstance(event, SessionCreated | SessionResumed):
                self._duties.begin_again(anew=isinstance(event, SessionCreated))
            if not self._duties.accepts(received.seq):
                return
            self._duties.on_event(event, received.seq)
        self.listen()
        self.perform(self.machine.on_event(event, received.seq, self._now()))
        if isinstance(event, SessionCreated | SessionUpdated | SessionResumed):
            self._follow_format(event.session)
        elif isinstance(event, Reconnecting):
            self._wait_for_a_line()
        elif isinstance(event, Reconnected):
            self._go_on()
            if self._duties is None:
                self.perform(self.machine.came_back())
        if self._duties is None and _is_duplex(event):
            self._take_up_duties(received)
        self.streams.put(event)
        if self._responses is not None:
            self._responses.put(event)
        self.replies.offer(event)
        self.tools.on_event(event)
        self._news.set()

    def _follow_format(self, session: AnySession) -> None:
        wanted = session.audio.input.format
        if wanted != self._input_format:
            self._input_format = wanted
            self._encoder = output_encoder(RATE_HZ, wanted)

    # The duplex dialect

    def _take_up_duties(self, greeting: Received) -> None:
        self._duties = DuplexDuties(self.machine.playback, self._now())
        self._duties.on_event(greeting.event, greeting.seq)
        self.start("client-duties", self._do_duties(self._duties))

    async def _do_duties(self, duties: DuplexDuties) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            self._catch_up(duties)

    def _catch_up(self, duties: DuplexDuties) -> None:
        self.listen()
        unsounded = 0 if self._device is None else self._device.unsounded()
        self.perform([Send(command) for command in duties.due(unsounded, self._now())])

    async def _say_goodbye(self) -> None:
        assert self._duties is not None
        self._catch_up(self._duties)
        with suppress(CallError, LimitExceeded, TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await self.ask((CloseSession(),), one_of(SessionClosed))

    # A lost connection

    def _wait_for_a_line(self) -> None:
        self.reconnecting = True
        self._waits.pause()
        transport = self._transport
        if isinstance(transport, ReconnectingTransport):
            self.outbox.shed_oldest(transport.kept_bytes, transport.dropped)

    def _go_on(self) -> None:
        self.reconnecting = False
        self._waits.go_on()
        self.outbox.shed_nothing()

    # Life

    async def _be_greeted(self, opening: SessionPatch | None) -> None:
        ids: list[str] = []
        if self._speaks_first:
            first = UpdateSession(session=opening or SessionPatch(), event_id="client_opening")
            ids.append(self.send(first) or "")
        greeting = self.replies.wait(ids, one_of(SessionCreated))
        await self.in_time(greeting, "the connection", NotRealtimeServer)

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


def _is_duplex(event: EventOrUnknown) -> bool:
    return isinstance(event, SessionCreated) and isinstance(event.session, DuplexSessionResource)


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
