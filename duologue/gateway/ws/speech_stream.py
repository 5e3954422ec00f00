"""``WS /v1/audio/speech/stream``: text in as it is written, speech out as it is made.

One task reads and one task for each utterance speaks, in their order, so that a cancel is heard in
the midst of a word. This module must not know how a voice speaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import WSMessage, WSMsgType, web

from duologue.core.errors import (
    ClientError,
    DuologueError,
    LimitExceeded,
    ProtocolError,
)
from duologue.gateway.http.routes import JSON, WAIT_PARAMETER, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.speech.utterance import SpeechChoice, Utterance, chosen
from duologue.gateway.ws.form import PLAIN_PROTOCOL
from duologue.gateway.ws.route_sockets import RouteSockets
from duologue.protocol.errors import ErrorCode, error_body
from duologue.protocol.speech_stream import (
    AppendText,
    CancelSpeech,
    CloseSpeech,
    ConfigureSpeech,
    FinishText,
    FlushText,
    SpeechCommand,
    SpeechError,
    SpeechEvent,
    SpeechSessionCreated,
    SpeechSessionUpdated,
    decode_speech_command,
    no_binary,
)

MAX_MESSAGE_BYTES = 256 * 1024
MAX_UTTERANCES = 4
"""Of one connection, that are not over."""


class SpeechStreamEndpoint:
    """All connections of this kind."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._sockets = RouteSockets()

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="GET",
                path="/v1/audio/speech/stream",
                operation="streamSpeech",
                summary="Speak text while it is being written (WebSocket).",
                handle=self.handle,
                answers=(Content(JSON),),
                parameters=(WAIT_PARAMETER,),
                refusals=(400,),
                is_socket=True,
            ),
        )

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Hold one connection; raises ``ClientError`` where nothing speaks here."""
        choice = chosen(self._services.catalogue, SpeechChoice())
        async with self._sockets.hold(
            request, max_message_bytes=MAX_MESSAGE_BYTES, protocols=(PLAIN_PROTOCOL,)
        ) as socket:
            await _Connection(socket, self._services, choice).hold()
        return socket

    async def close_all(self, limit_s: float) -> None:
        """Say goodbye to everybody, for ``limit_s`` at most: the server goes down."""
        await self._sockets.close_all(limit_s)


class _Connection:
    """One client."""

    def __init__(
        self, socket: web.WebSocketResponse, services: HttpServices, choice: SpeechChoice
    ) -> None:
        self._socket = socket
        self._services = services
        self._choice = choice
        self._utterances: list[Utterance] = []
        """Those that are not over; the last one may still be given text."""
        self._made = 0
        self._closing = False
        self._group = asyncio.TaskGroup()
        self._reader: asyncio.Task[None] | None = None

    async def hold(self) -> None:
        """Read until the client leaves, says so, or says nothing for too long."""
        await self._send(SpeechSessionCreated(session=self._choice.shown()))
        try:
            async with self._group:
                self._reader = self._group.create_task(self._read(), name="reader")
        except* ConnectionError:
            pass  # whoever wrote last found out that the client has gone
        await self._socket.close()

    async def _read(self) -> None:
        idle_s = self._services.settings.speech_stream_idle_s
        while not (self._closing and not self._utterances):
            try:
                message = await self._socket.receive(idle_s)
            except TimeoutError:
                if self._utterances and self._current() is None:
                    continue  # it listens
                await self._refuse(_idle(idle_s))
                self._cancel()
                return
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                self._cancel()
                return
            try:
                await self._take(message)
            except DuologueError as exc:
                await self._refuse(exc)

    async def _take(self, message: WSMessage) -> None:
        if message.type is WSMsgType.BINARY:
            raise no_binary()
        command = decode_speech_command(message.data.encode())
        try:
            await self._apply(command)
        except ClientError as exc:
            exc.event_id = exc.event_id or command.event_id
            raise

    async def _apply(self, command: SpeechCommand) -> None:
        """Do what a message says."""
        current = self._current()
        match command:
            case CancelSpeech():
                self._cancel()
            case _ if self._closing:
                raise ProtocolError("the session was closed by session.close")
            case ConfigureSpeech():
                await self._configure(command)
            case AppendText(text=text):
                self._utterance(text).feed(text)
            case FlushText() if current is not None:
                current.flush()
            case FinishText() if current is not None:
                current.finish()
            case CloseSpeech():
                self._closing = True
                if current is not None:
                    current.finish()
            case _:
                pass  # there is nothing to flush or to finish

    async def _configure(self, change: ConfigureSpeech) -> None:
        if self._current() is not None:
            raise ProtocolError(
                "an utterance is being spoken: end it with input.done or input.cancel first",
                code=ErrorCode.RESPONSE_ACTIVE,
            )
        self._choice = chosen(self._services.catalogue, self._choice, change)
        await self._send(SpeechSessionUpdated(session=self._choice.shown()))

    def _current(self) -> Utterance | None:
        """The utterance that is still given text."""
        last = self._utterances[-1] if self._utterances else None
        return None if last is None or last.has_all_text else last

    def _utterance(self, text: str) -> Utterance:
        """The utterance that text belongs to."""
        limit = self._services.settings.max_speech_chars
        current = self._current()
        chars = len(text) + (0 if current is None else current.chars)
        if chars > limit:
            raise LimitExceeded(
                f"the utterance has {chars} characters, the limit is {limit}; "
                "end it with input.done and begin another one",
                param="text",
            )
        if current is not None:
            return current
        if len(self._utterances) >= MAX_UTTERANCES:
            raise LimitExceeded(
                f"{MAX_UTTERANCES} utterances wait to be spoken; wait for audio.done",
                code=ErrorCode.RATE_LIMITED,
            )
        before = self._utterances[-1] if self._utterances else None
        utterance = Utterance(self._services, self._choice, self._made, before)
        self._made += 1
        self._utterances.append(utterance)
        self._group.create_task(self._speak(utterance), name=f"utterance-{utterance.number}")
        return utterance

    def _cancel(self) -> None:
        for utterance in self._utterances:
            utterance.cancel()

    async def _speak(self, utterance: Utterance) -> None:
        try:
            await utterance.speak(self._send, self._socket.send_bytes)
        finally:
            self._utterances.remove(utterance)
            if self._closing and not self._utterances and self._reader is not None:
                self._reader.cancel()  # it waits for a message that will not come

    async def _refuse(self, exc: Exception) -> None:
        await self._send(SpeechError(error=error_body(exc)))

    async def _send(self, event: SpeechEvent) -> None:
        await self._socket.send_str(msgspec.json.encode(event).decode())


def _idle(idle_s: float) -> ProtocolError:
    return ProtocolError(
        f"nothing was said for {idle_s:g} s; the connection ends", code=ErrorCode.SESSION_EXPIRED
    )
