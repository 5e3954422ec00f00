"""The SDK: one call with a Duologue, or any Realtime, server.

A thin shell around a call machine: it carries events and commands between the machine and a
transport, and keeps time. Nothing in here decides what an event means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from duologue.clients.address import realtime_url
from duologue.clients.devices import Device
from duologue.clients.effects import ClientEffect, Send
from duologue.clients.errors import (
    CallEnded,
    CallError,
    CommandRefused,
    ConnectionLost,
    NotRealtimeServer,
    SendBufferFull,
    ServerSilent,
)
from duologue.clients.event_stream import EventStream, EventStreams
from duologue.clients.machine import CallMachine, EventOrUnknown
from duologue.clients.outbox import Outbox
from duologue.clients.playback import RATE_HZ, ClockSpeaker, Playback, Taken
from duologue.clients.replies import Pick, Replies
from duologue.clients.session_patches import SessionChanges, session_patch
from duologue.clients.timing import CallTiming
from duologue.clients.transcript import Transcript
from duologue.clients.transports.base import OpenTransport, Received, Transport
from duologue.clients.transports.in_process import InProcessTransport
from duologue.clients.transports.websocket import WebSocketTransport
from duologue.codecs.encoder import OutputEncoder
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ProtocolError
from duologue.core.ids import id_maker
from duologue.core.tasks import guard
from duologue.protocol.audio_formats import (
    AudioFormat,
    PcmFormat,
    format_rate_hz,
    format_sample_bytes,
)
from duologue.protocol.commands import (
    AppendAudio,
    ClearAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
    RetrieveItem,
    UpdateSession,
)
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCommitted,
    ItemRetrieved,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.items import InputText, Item, MessageItem
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.protocol.session_config import SessionResource
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import SessionPort
from duologue.telemetry import get_logger

T = TypeVar("T")
E = TypeVar("E")

TIMEOUT_S = 10.0
_LISTENING_STEP_S = 0.02
"""How often a condition on what was heard is looked at, in a call without a device."""

_NATIVE = PcmFormat(rate=24000)


class DuplexClient:
    """One call: ``async with DuplexClient.connect(url) as call``.

    Events are read and acted upon whether or not somebody iterates over them. Speech is played by
    the device, if there is one; otherwise it counts as heard as time passes. When the person
    interrupts, playback stops and the server is told how much was heard.

    Args:
        open_transport: Makes the connection when the call begins.
        device: Microphone and loudspeaker.
        clock: The time of everything.
        timeout_s: How long the server may take to answer a command.
    """

    def __init__(
        self,
        open_transport: OpenTransport,
        *,
        device: Device | None = None,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._open_transport = open_transport
        self._device = device
        self._now = (clock or SystemClock()).now
        self._timeout_s = timeout_s
        self._machine = CallMachine(Playback(RATE_HZ))
        self._speaker = None if device else ClockSpeaker(self._machine.playback)
        self._encoder = OutputEncoder(RATE_HZ, _NATIVE)
        self._input_format: AudioFormat = _NATIVE
        self._streams = EventStreams()
        self._replies = Replies()
        self._outbox = Outbox()
        self._new_id = id_maker()
        self._commands = 0
        self._news = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._transport: Transport | None = None
        self._ended: CallError | None = None
        self._crash: Exception | None = None
        self._log = get_logger("client")

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        model: str | None = None,
        device: Device | None = None,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> DuplexClient:
        """Return a call over a WebSocket; entering it connects.

        Args:
            url: ``ws://localhost:8080/v1/realtime``; ``localhost:8080`` is enough.
            model: One of the server's models; its default without one.

        Raises:
            ConfigError: The URL is none. On entering: what ``WebSocketTransport.open`` raises.
        """
        address = realtime_url(url, model)

        async def open_transport() -> Transport:
            return await WebSocketTransport.open(address, api_key=api_key, open_timeout_s=timeout_s)

        return cls(open_transport, device=device, clock=clock, timeout_s=timeout_s)

    @classmethod
    def in_process(
        cls, session: SessionPort, *, device: Device | None = None, clock: Clock | None = None
    ) -> DuplexClient:
        """Return a call on a session of this process, as ``SessionManager.open`` makes it."""

        async def open_transport() -> Transport:
            return InProcessTransport(session)

        return cls(open_transport, device=device, clock=clock)

    async def __aenter__(self) -> DuplexClient:
        self._transport = transport = await self._open_transport()
        await self._group.__aenter__()
        try:
            self._start("client-reader", self._read(transport))
            self._start("client-writer", self._write(transport))
            greeting = self._replies.wait((), _one_of(SessionCreated))
            await self._in_time(greeting, "the connection", NotRealtimeServer)
            if self._device is not None:
                self._start("client-device", self._device.run(_Port(self)))
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave()
        if self._crash is not None and exc is None:
            raise self._crash

    # What is known

    @property
    def session(self) -> SessionResource:
        """The session as the server showed it last."""
        session = self._machine.session
        assert session is not None, "a call that was entered has a session"
        return session

    @property
    def transcript(self) -> Transcript:
        """What both sides said, and of the answers what was heard."""
        self._listen()
        return self._machine.transcript

    @property
    def timing(self) -> CallTiming:
        """When things happened, turn by turn."""
        self._listen()
        return self._machine.timing

    @property
    def playback(self) -> Playback:
        """What waits to be heard. To look at; the call alone changes it."""
        self._listen()
        return self._machine.playback

    @property
    def answering(self) -> bool:
        """An answer is being made, or heard."""
        self._listen()
        return self._machine.answering

    @property
    def ended(self) -> CallError | None:
        """Why the call is over; ``None`` while it goes on."""
        return self._ended

    def events(self) -> EventStream:
        """Return an iterator over the server's events.

        The first one starts with the first event of the call, later ones with the next event.
        """
        return self._streams.open()

    # What to do

    def send(self, command: Command) -> str | None:
        """Send any command; never waits. Errors in answer to it repeat the id that is returned.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        if self._ended is not None:
            raise self._ended
        if command.event_id is None and not isinstance(command, AppendAudio):
            self._commands += 1
            command = msgspec.structs.replace(command, event_id=f"client_{self._commands}")
        self._outbox.put(command)
        if isinstance(command, AppendAudio):
            self._machine.sent_audio(self._duration_s(command.audio), self._now())
        return command.event_id

    def send_audio(self, pcm: bytes) -> None:
        """Say something: s16le mono at 24 kHz, of any length. Never waits.

        The server's format, where it is another one, is taken care of.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        is_native = self._input_format == _NATIVE
        self.send(AppendAudio(audio=pcm if is_native else self._encoder.encode(pcm)))

    async def drain(self) -> None:
        """Wait until everything that was sent is on its way."""
        await self._outbox.drained()

    async def update(
        self, patch: SessionPatch | None = None, **changes: Unpack[SessionChanges]
    ) -> SessionResource:
        """Change the session; all of it, or nothing.

        Args:
            patch: The change as it is on the wire.
            changes: Or in plain words, see ``SessionChanges``.

        Returns:
            What is in force now.

        Raises:
            CommandRefused: The server does not accept a value; nothing changed.
        """
        wanted = session_patch(**changes) if patch is None else patch
        updated = await self._ask((UpdateSession(session=wanted),), _one_of(SessionUpdated))
        return updated.session

    async def say_text(self, text: str) -> str:
        """Type instead of speaking. An answer that is being given is interrupted.

        Returns:
            The id of the response that answers.

        Raises:
            CommandRefused: The server does not accept the text.
        """
        await self.interrupt()
        item = MessageItem(id=self._new_id("item"), role="user", content=(InputText(text=text),))
        return await self._begin_response((CreateItem(item=item), CreateResponse()))

    async def create_response(self, params: ResponseParams | UnsetType = UNSET) -> str:
        """Ask for an answer; returns its id.

        Raises:
            CommandRefused: There is an active one, or a value is not accepted.
        """
        return await self._begin_response((CreateResponse(response=params),))

    async def commit_audio(self) -> str:
        """End the turn by hand, where ``turn_detection`` is off; returns its item's id.

        Raises:
            CommandRefused: There is too little audio.
        """
        committed = await self._ask((CommitAudio(),), _one_of(AudioCommitted))
        return committed.item_id

    def clear_audio(self) -> None:
        """Forget what was said since the last turn."""
        self.send(ClearAudio())

    async def interrupt(self) -> None:
        """Stop the answer that is being made or heard, and wait until the server has, too."""
        self._listen()
        active = self._machine.active_response_id
        if not self._machine.answering:
            return
        ids = self._perform(self._machine.interrupt())
        if active is None:
            return
        over = _one_of(ResponseDone, lambda event: event.response.id == active)
        try:
            await self._in_time(self._replies.wait(ids, over), "response.cancel")
        except CommandRefused as exc:
            # The cancel and the end of the response may cross on the way.
            if exc.code != ErrorCode.CANCEL_NOT_ACTIVE:
                raise

    async def retrieve(self, item_id: str) -> Item:
        """Return an item as the server has it; of speech that was cut, what was heard.

        Raises:
            CommandRefused: There is no such item.
        """
        found = _one_of(ItemRetrieved, lambda event: event.item.id == item_id)
        return (await self._ask((RetrieveItem(item_id=item_id),), found)).item

    async def wait_for(self, kind: type[E], timeout_s: float = 60.0) -> E:
        """Return the next event of a kind.

        Raises:
            TimeoutError: None came.
            CallError: The call ended first.
        """
        async with asyncio.timeout(timeout_s):
            async for event in self._streams.from_now():
                if isinstance(event, kind):
                    return event
        raise CallEnded(f"the call ended before there was a {kind.__name__}")

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Wait for something about this call to become true.

        Raises:
            TimeoutError: It did not.
            CallError: The call ended first.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                self._listen()
                if condition():
                    return
                if self._ended is not None:
                    raise self._ended
                self._news.clear()
                await self._next_news()

    async def wait_until_quiet(self, timeout_s: float = 60.0) -> None:
        """Wait until no answer is being made or heard.

        Raises:
            TimeoutError: It goes on.
            CallError: The call ended first.
        """
        await self.wait_until(lambda: not self._machine.answering, timeout_s)

    async def hang_up(self) -> None:
        """End the call; leaving the ``async with`` block does so, too."""
        self._end(CallEnded("the call is over"))
        if self._transport is not None:
            await self._transport.close()

    # Commands and their answers

    async def _begin_response(self, commands: Sequence[Command]) -> str:
        return (await self._ask(commands, _one_of(ResponseCreated))).response.id

    async def _ask(self, commands: Sequence[Command], pick: Pick[T]) -> T:
        ids = [sent for command in commands if (sent := self.send(command)) is not None]
        return await self._in_time(self._replies.wait(ids, pick), _name_of(commands[-1]))

    async def _in_time(
        self,
        reply: Awaitable[T],
        what: str,
        error: type[CallError] = ServerSilent,
    ) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await reply
        except TimeoutError as exc:
            raise error(f"the server has not answered {what} for {self._timeout_s:g} s") from exc

    # The machine's shell

    async def _read(self, transport: Transport) -> None:
        while True:
            try:
                received = await transport.receive()
            except ProtocolError as exc:
                if self._machine.session is None:
                    raise NotRealtimeServer(
                        f"the server's first message is not of this dialect: {exc.message}"
                    ) from exc
                self._log.warning("unreadable_event", param=exc.param)
                continue
            self._apply(received)

    async def _write(self, transport: Transport) -> None:
        while True:
            await transport.send(await self._outbox.take())

    def _apply(self, received: Received) -> None:
        event = received.event
        self._listen()
        self._perform(self._machine.on_event(event, received.seq, self._now()))
        if isinstance(event, SessionCreated | SessionUpdated):
            self._follow_format(event.session)
        self._streams.put(event)
        self._replies.offer(event)
        self._news.set()

    def _perform(self, effects: Sequence[ClientEffect]) -> list[str]:
        """Do what the machine wants; returns the ids of what was sent."""
        ids: list[str] = []
        for effect in effects:
            if isinstance(effect, Send):
                try:
                    ids.append(self.send(effect.command) or "")
                except SendBufferFull as exc:
                    self._end(ConnectionLost(f"the server reads nothing: {exc.message}"))
                except CallError:
                    # Nobody is left to be told.
                    break
            else:
                unplayed = 0 if self._device is None else self._device.silence()
                ids += self._perform(self._machine.silenced(unplayed))
        return ids

    def _follow_format(self, session: SessionResource) -> None:
        wanted = session.audio.input.format
        if wanted != self._input_format:
            self._input_format = wanted
            self._encoder = OutputEncoder(RATE_HZ, wanted)

    def _duration_s(self, wire: bytes) -> float:
        samples = len(wire) / format_sample_bytes(self._input_format)
        return samples / format_rate_hz(self._input_format)

    def _listen(self) -> None:
        """Without a device, what was due until now counts as heard."""
        if self._speaker is None:
            return
        now = self._now()
        began_at = self._speaker.played_until or now
        self._machine.played(self._speaker.let_pass(now), began_at)

    def _take(self, samples: int) -> Taken:
        taken = self._machine.take(samples, self._now())
        self._news.set()
        return taken

    async def _next_news(self) -> None:
        if self._speaker is None or not self._machine.playback.waiting_samples:
            await self._news.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTENING_STEP_S):
                await self._news.wait()

    # Life

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._group.create_task(guard(work, self._crashed), name=name))

    def _crashed(self, exc: Exception) -> None:
        if isinstance(exc, CallError):
            self._end(exc)
            return
        self._crash = exc
        self._end(CallEnded("the client failed", close_code=1011))

    def _end(self, error: CallError) -> None:
        if self._ended is not None:
            return
        self._ended = error
        is_normal = isinstance(error, CallEnded) and error.is_normal
        self._outbox.close()
        self._replies.end(error)
        self._streams.end(None if is_normal else error)
        self._news.set()

    async def _leave(self) -> None:
        await self.hang_up()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)


class _Port:
    """The call, as its device sees it."""

    def __init__(self, client: DuplexClient) -> None:
        self._client = client

    @property
    def rate_hz(self) -> int:
        return RATE_HZ

    def send_audio(self, pcm: bytes) -> None:
        self._client.send_audio(pcm)

    def take_audio(self, samples: int) -> Taken:
        return self._client._take(samples)


def _one_of(kind: type[E], matches: Callable[[E], bool] | None = None) -> Pick[E]:
    def pick(event: EventOrUnknown) -> E | None:
        if not isinstance(event, kind) or (matches is not None and not matches(event)):
            return None
        return event

    return pick


def _name_of(command: Command) -> str:
    return str(command.__struct_config__.tag)
