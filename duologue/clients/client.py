"""The SDK's face: one call with a Duologue, or any Realtime, server, in a program's own words.

This module must not know how events and commands travel: that is ``connection``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar, Unpack

from msgspec import UNSET, UnsetType

from duologue.clients.arguments import checked_recording, checked_text
from duologue.clients.asking import answer_to, answer_within, uninterrupted
from duologue.clients.camera import frame_of
from duologue.clients.connection import Connection, one_of
from duologue.clients.devices import Device
from duologue.clients.errors import CallError
from duologue.clients.event_stream import EventStream
from duologue.clients.interrupting import interrupt
from duologue.clients.playback import Playback
from duologue.clients.reconnect.policy import RECONNECT, ReconnectPolicy
from duologue.clients.recordings import say_at_once, say_until_answered
from duologue.clients.responses import Response, ResponseStream
from duologue.clients.session_patches import SessionChanges, check_plain, session_patch
from duologue.clients.timing import CallTiming
from duologue.clients.transcript import Transcript
from duologue.clients.transports.base import OpenTransport, Transport
from duologue.clients.transports.in_process import InProcessTransport
from duologue.clients.transports.opening import TransportName, opener
from duologue.core.clock import Clock, SystemClock
from duologue.core.ids import id_maker
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.client_dialects import ClientFamily
from duologue.protocol.commands import (
    ClearAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
    RetrieveItem,
    UpdateSession,
)
from duologue.protocol.dialect import Encoding
from duologue.protocol.duplex.session_resource import DuplexCapabilities, DuplexSessionResource
from duologue.protocol.events import AudioCommitted, ItemRetrieved, SessionUpdated
from duologue.protocol.items import InputText, Item, MessageItem
from duologue.protocol.response_events import ResponseCreated
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import SessionPort

E = TypeVar("E")

TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 120.0


class DuplexClient:
    """One call: ``async with DuplexClient.connect(url) as call``.

    Events are read and acted upon whether or not somebody iterates over them. Speech is played by
    the device, if there is one; otherwise it counts as heard as time passes. When the person
    interrupts, playback stops and the server is told how much was heard. Arguments of a wrong type
    raise ``TypeError`` before anything is sent.

    Args:
        open_transport: Makes the connection when the call begins.
        device: Microphone and loudspeaker.
        clock: The time of everything.
        timeout_s: How long the server may take to answer a command.
        speaks_first: The server says nothing before it is told what the session is to be, as in the
            duplex dialect with ``autostart=0``.
        changes: What the session is to be from its beginning; ``tools`` are run when the model
            calls them.

    Concurrency:
        Belongs to the event loop on which it was entered.
    """

    def __init__(
        self,
        open_transport: OpenTransport,
        *,
        device: Device | None = None,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
        speaks_first: bool = False,
        **changes: Unpack[SessionChanges],
    ) -> None:
        self._new_id = id_maker()
        self._clock = clock or SystemClock()
        self._connection = Connection(
            open_transport, device, self._clock, timeout_s, self._new_id, speaks_first
        )
        self._machine = self._connection.machine
        self._opening = self._prepared(changes) if changes else None

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        model: str | None = None,
        transport: TransportName = "websocket",
        dialect: ClientFamily = "realtime",
        encodings: Sequence[Encoding] = ("msgpack", "json"),
        device: Device | None = None,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
        reconnect: ReconnectPolicy | None = RECONNECT,
        **changes: Unpack[SessionChanges],
    ) -> DuplexClient:
        """Return a call; entering it connects.

        Args:
            url: ``ws://localhost:8080/v1/realtime``; ``localhost:8080`` is enough.
            api_key: A key or a client secret, if the server wants one.
            model: One of the server's models; its default without one.
            transport: ``webrtc`` for Opus and a jitter buffer (extra ``webrtc``); the server plays
                then, and knows by itself what was heard.
            dialect: ``duplex`` for events that are acknowledged both ways, playback that the server
                is told of as it is heard, and decisions about overlaps.
            encodings: In the order of preference; JSON where the server offers no other.
            reconnect: What is done about a lost connection, in the duplex dialect; ``None``: the
                call ends with it, as it does in the plain one.

        Raises:
            ConfigError: The URL is none, a tool cannot be one, or a setting is of another dialect.
                On entering: what the transport's ``open`` raises, and ``CommandRefused``.
        """
        duplex = dialect == "duplex"
        open_transport = opener(
            url,
            transport=transport,
            api_key=api_key,
            model=model,
            dialect=dialect,
            encodings=encodings,
            timeout_s=timeout_s,
            clock=clock or SystemClock(),
            reconnect=reconnect,
        )
        if duplex:
            # The dialect's own default is 16 kHz; what a device gives needs no conversion then.
            changes.setdefault("input_format", PcmFormat())
        call = cls(
            open_transport,
            device=device,
            clock=clock,
            timeout_s=timeout_s,
            speaks_first=duplex,
            **changes,
        )
        if not duplex:
            check_plain(call._opening)
        return call

    @classmethod
    def in_process(
        cls,
        session: SessionPort,
        *,
        device: Device | None = None,
        clock: Clock | None = None,
        **changes: Unpack[SessionChanges],
    ) -> DuplexClient:
        """Return a call on a session of this process, as ``SessionManager.open`` makes it."""

        async def open_transport() -> Transport:
            return InProcessTransport(session)

        return cls(open_transport, device=device, clock=clock, **changes)

    async def __aenter__(self) -> DuplexClient:
        await self._connection.begin(self._opening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._connection.leave()
        if self._connection.crash is not None and exc is None:
            raise self._connection.crash

    # What is known

    @property
    def session(self) -> AnySession:
        """The session as the server showed it last."""
        session = self._machine.session
        assert session is not None, "a call that was entered has a session"
        return session

    @property
    def capabilities(self) -> DuplexCapabilities | None:
        """What this session can do; only the duplex dialect says."""
        session = self.session
        return session.capabilities if isinstance(session, DuplexSessionResource) else None

    @property
    def transcript(self) -> Transcript:
        """What both sides said, speech only with ``transcription``, and what was heard of it."""
        self._connection.listen()
        return self._machine.transcript

    @property
    def timing(self) -> CallTiming:
        """When things happened, turn by turn."""
        self._connection.listen()
        return self._machine.timing

    @property
    def playback(self) -> Playback:
        """What waits to be heard. To look at; the call alone changes it."""
        self._connection.listen()
        return self._machine.playback

    @property
    def answering(self) -> bool:
        """An answer is being made, or heard."""
        self._connection.listen()
        return self._machine.answering

    @property
    def active_response_id(self) -> str | None:
        """The answer that is being made; one that is only being heard is none."""
        return self._machine.active_response_id

    @property
    def reconnecting(self) -> bool:
        """The connection is lost, and another one is on its way; the call goes on."""
        return self._connection.reconnecting

    @property
    def ended(self) -> CallError | None:
        """Why the call is over; ``None`` while it goes on."""
        return self._connection.ended

    def events(self) -> EventStream:
        """Return an iterator over the server's events.

        The first one starts with the first event of the call, later ones with the next event.
        """
        return self._connection.streams.open()

    def responses(self) -> ResponseStream:
        """Return an iterator over the answers, each handed out when it begins.

        The first one starts with the first answer of the call, later ones with the next answer.
        Answers are collected only for those who iterate, or ``ask``.
        """
        return self._connection.responses.open()

    # What to do

    def send(self, command: Command) -> str | None:
        """Send any command; never waits. Errors in answer to it repeat the id that is returned.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        return self._connection.send(command)

    def send_audio(self, pcm: bytes) -> None:
        """Say something: s16le mono at 24 kHz, of any length, whatever the server's format is.

        Never waits.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """
        self._connection.send_audio(pcm)

    def show_frame(self, picture: bytes, frame_id: str | None = None) -> None:
        """Show what the camera sees now: a JPEG, PNG or WebP file, as often as you like.

        The next turn is given some of the newest. Never waits; a frame that waits gives way.

        Raises:
            ConfigError: The call is not of the duplex dialect, or its model does not see.
            CallError: The call is over.
        """
        self.send(frame_of(picture, frame_id, self.capabilities))

    async def drain(self) -> None:
        """Wait until everything that was sent is on its way."""
        await self._connection.outbox.drained()

    async def update(
        self, patch: SessionPatch | None = None, **changes: Unpack[SessionChanges]
    ) -> AnySession:
        """Change the session; all of it, or nothing.

        Args:
            patch: The change as it is on the wire.
            changes: Or in plain words, see ``SessionChanges``.

        Returns:
            What is in force now.

        Raises:
            CommandRefused: The server does not accept a value; nothing changed.
            ConfigError: A setting is of the duplex dialect, and the call is not.
        """
        wanted = self._prepared(changes) if patch is None else patch
        if self.capabilities is None:
            check_plain(wanted)
        command = UpdateSession(session=wanted)
        return (await self._connection.ask((command,), one_of(SessionUpdated))).session

    async def say_text(self, text: str) -> str:
        """Type instead of speaking. An answer that is being given is interrupted.

        Returns:
            The id of the response that answers.

        Raises:
            CommandRefused: The server does not accept the text.
        """
        content = (InputText(text=checked_text(text)),)
        await self.interrupt()
        item = MessageItem(id=self._new_id("item"), role="user", content=content)
        return await self._begin_response((CreateItem(item=item), CreateResponse()))

    async def ask(self, text: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Response:
        """Type a question and return the whole answer; if functions are called, the one after them.

        Raises:
            CommandRefused: The server does not accept the text.
            AnswerTimeout: The answer takes too long. It goes on.
            CallError: The call ended first.
        """
        async with answer_within(timeout_s):
            answers = self._connection.responses.from_now()
            response_id = await self.say_text(text)
            return await answer_to(response_id, answers, self._connection.tools.answers)

    async def ask_audio(self, pcm: bytes, timeout_s: float = ANSWER_TIMEOUT_S) -> Response:
        """Say a recording as a person would, be silent, and return the answer as ``ask`` does.

        It takes as long as the recording, unless ``turn_detection`` is off: then the turn is
        committed as soon as all is sent.

        Args:
            pcm: One turn: s16le mono at 24 kHz.

        Raises:
            CommandRefused: There is too little audio.
            CodecError: It is a file, such as a WAV: see ``read_wav``.
            AnswerTimeout: No answer came in time; the message says if no speech was found.
            CallError: The call ended first.
        """
        pcm, began = checked_recording(pcm), self._clock.now()
        async with answer_within(timeout_s, lambda: self._machine.unheard_since(began)):
            answers = self._connection.responses.from_now()
            if self.session.audio.input.turn_detection is None:
                await say_at_once(self, pcm)
                await self.commit_audio()
                await self.create_response()
                return await uninterrupted(answers, self._connection.tools.answers)
            answer = uninterrupted(answers, self._connection.tools.answers)
            start = self._connection.start
            return await say_until_answered(self, pcm, self._clock, start, answer)

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
        return (await self._connection.ask((CommitAudio(),), one_of(AudioCommitted))).item_id

    def clear_audio(self) -> None:
        """Forget what was said since the last turn."""
        self.send(ClearAudio())

    async def interrupt(self) -> None:
        """Stop the answer that is being made or heard, and wait until the server has, too."""
        await interrupt(self._connection)

    async def retrieve(self, item_id: str) -> Item:
        """Return an item as the server has it; of speech that was cut, what was heard.

        Raises:
            CommandRefused: There is no such item.
        """
        found = one_of(ItemRetrieved, lambda event: event.item.id == item_id)
        return (await self._connection.ask((RetrieveItem(item_id=item_id),), found)).item

    async def wait_for(self, kind: type[E], timeout_s: float = 60.0) -> E:
        """Return the next event of a kind.

        Raises:
            TimeoutError: None came.
            CallError: The call ended first.
        """
        return await self._connection.streams.next_of(kind, timeout_s)

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Wait for something about this call to become true.

        Raises:
            TimeoutError: It did not.
            CallError: The call ended first.
        """
        await self._connection.wait_until(condition, timeout_s)

    async def wait_until_quiet(self, timeout_s: float = 60.0) -> None:
        """Wait until no answer is being made or heard.

        Raises:
            TimeoutError: It goes on.
            CallError: The call ended first.
        """
        await self.wait_until(lambda: not self._machine.answering, timeout_s)

    async def hang_up(self) -> None:
        """End the call; leaving the ``async with`` block does so, too."""
        await self._connection.hang_up()

    def _prepared(self, changes: SessionChanges) -> SessionPatch:
        """Return the patch for some changes, and make its functions ready to be called.

        Raises:
            ConfigError: One of the tools cannot be one.
        """
        patch = session_patch(**changes)
        if "tools" in changes:
            self._connection.tools.use(changes["tools"])
        return patch

    async def _begin_response(self, commands: Sequence[Command]) -> str:
        return (await self._connection.ask(commands, one_of(ResponseCreated))).response.id
