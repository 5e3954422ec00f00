"""The server's side of a call, event by event, as a client sees it."""

from __future__ import annotations

import asyncio
from collections import deque

from duologue.clients.errors import CallEnded, CallError
from duologue.clients.transports.base import Received
from duologue.protocol.audio_formats import AudioFormat, PcmFormat
from duologue.protocol.commands import Command
from duologue.protocol.events import (
    DurationUsage,
    ErrorBody,
    ErrorEvent,
    Event,
    SessionCreated,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
)
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    OutputItemAdded,
    ResponseCreated,
    ResponseDone,
)
from duologue.protocol.response_resource import (
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseResource,
    ResponseStatus,
)
from duologue.protocol.session_config import SemanticVad, SessionConfig, TurnDetection, to_wire

LOUD = (1000).to_bytes(2, "little")
DETECTION = SemanticVad()
PCM = PcmFormat()


def greeting(
    turn_detection: TurnDetection | None = DETECTION, input_format: AudioFormat = PCM
) -> SessionCreated:
    config = SessionConfig(turn_detection=turn_detection, input_format=input_format)
    return SessionCreated(session=to_wire(config, "sess_1", "model", 0))


def speech_started(item_id: str, audio_start_ms: int = 0) -> SpeechStarted:
    return SpeechStarted(audio_start_ms=audio_start_ms, item_id=item_id)


def speech_stopped(item_id: str, audio_end_ms: int = 0) -> SpeechStopped:
    return SpeechStopped(audio_end_ms=audio_end_ms, item_id=item_id)


def transcribed(item_id: str, text: str) -> TranscriptionCompleted:
    return TranscriptionCompleted(
        item_id=item_id, transcript=text, usage=DurationUsage(seconds=1.0)
    )


def refusal(event_id: str | None, code: str = "invalid_value") -> ErrorEvent:
    body = ErrorBody(type="invalid_request_error", code=code, message="no", event_id=event_id)
    return ErrorEvent(error=body)


class FakeAnswer:
    """One response with one spoken item, in any order a test likes."""

    def __init__(self, name: str, audio_format: AudioFormat = PCM) -> None:
        self.response_id = f"resp_{name}"
        self.item_id = f"item_{name}"
        self._format = audio_format
        self._text = ""

    def created(self) -> ResponseCreated:
        return ResponseCreated(response=self.resource("in_progress"))

    def item_added(self) -> OutputItemAdded:
        item = MessageItem(id=self.item_id, role="assistant", status="in_progress")
        return OutputItemAdded(response_id=self.response_id, output_index=0, item=item)

    def text(self, delta: str) -> AudioTranscriptDelta:
        self._text += delta
        return AudioTranscriptDelta(
            response_id=self.response_id,
            item_id=self.item_id,
            output_index=0,
            content_index=0,
            delta=delta,
        )

    def audio(self, milliseconds: int, sample: bytes = LOUD) -> AudioDelta:
        return AudioDelta(
            response_id=self.response_id,
            item_id=self.item_id,
            output_index=0,
            content_index=0,
            delta=sample * (24 * milliseconds),
        )

    def audio_done(self) -> AudioDone:
        return AudioDone(
            response_id=self.response_id, item_id=self.item_id, output_index=0, content_index=0
        )

    def text_done(self) -> AudioTranscriptDone:
        return AudioTranscriptDone(
            response_id=self.response_id,
            item_id=self.item_id,
            output_index=0,
            content_index=0,
            transcript=self._text,
        )

    def done(self, status: ResponseStatus = "completed") -> ResponseDone:
        return ResponseDone(response=self.resource(status))

    def item(self, transcript: str) -> MessageItem:
        return MessageItem(
            id=self.item_id, role="assistant", content=(OutputAudio(transcript=transcript),)
        )

    def resource(self, status: ResponseStatus) -> ResponseResource:
        return ResponseResource(
            id=self.response_id,
            status=status,
            output_modalities=("audio",),
            audio=ResponseAudioResource(
                output=ResponseAudioOutputResource(format=self._format, voice="v")
            ),
        )


class FakeTransport:
    """A connection whose other end is a test."""

    server_plays = False

    def __init__(self, *events: Event) -> None:
        self.sent: list[Command] = []
        self.closed = False
        self.stuck = False
        """Take no command any more."""
        self._awaited: list[tuple[type, asyncio.Event]] = []
        self._seq = 0
        self._events: deque[Event | Exception] = deque(events)
        self._news = asyncio.Event()

    def say(self, *events: Event | Exception) -> None:
        """Send events; an exception is raised to the reader in its turn."""
        self._events.extend(events)
        self._news.set()

    def hang_up(self, error: CallError | None = None) -> None:
        self.say(error or CallEnded("the call is over"))

    async def send(self, command: Command) -> None:
        while self.stuck:
            await asyncio.Event().wait()
        self.sent.append(command)
        for kind, event in self._awaited:
            if isinstance(command, kind):
                event.set()

    async def receive(self) -> Received:
        while not self._events:
            self._news.clear()
            await self._news.wait()
        event = self._events.popleft()
        if isinstance(event, Exception):
            raise event
        self._seq += 1
        return Received(event, self._seq)

    async def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def when(self, kind: type) -> asyncio.Event:
        """Return what is set once a command of a kind was sent."""
        event = asyncio.Event()
        self._awaited.append((kind, event))
        return event

    def of(self, kind: type) -> list[Command]:
        """What was sent of a kind."""
        return [command for command in self.sent if isinstance(command, kind)]
