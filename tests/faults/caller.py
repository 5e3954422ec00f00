"""A caller on a real socket, who speaks in beeps and checks all that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from duologue.clients.session_patches import TurnDetectionChoice, session_patch
from duologue.clients.transports.websocket import WebSocketTransport
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.events import (
    ErrorEvent,
    Event,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
)
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta, ResponseDone
from duologue.protocol.response_resource import ResponseResource
from duologue.sessions.port import Delivery
from tests.fakes.invariants import WireInvariants
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

E = TypeVar("E", bound=Event)

FRAME_MS = 40
FRAME_BYTES = BEEP_RATE_HZ * 2 * FRAME_MS // 1000


class Caller:
    """One call.

    Whatever happens, what comes must make sense on the wire; ``read`` fails the test where it does
    not, or where the server ends the call.
    """

    def __init__(self, transport: WebSocketTransport, patience_s: float) -> None:
        self.events: list[Event] = []
        self.wire = WireInvariants()
        self._transport = transport
        self._patience_s = patience_s
        self._news = asyncio.Event()
        self._responses_seen = 0

    async def read(self) -> None:
        """Take everything, for ever."""
        while True:
            received = await self._transport.receive()
            assert received.seq is not None
            self.wire.see(Delivery(received.seq, received.event))
            assert not isinstance(received.event, ErrorEvent), received.event
            self.events.append(received.event)
            self._news.set()

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait for something to be true of what has come."""
        async with asyncio.timeout(self._patience_s):
            while not done():
                self._news.clear()
                await self._news.wait()

    def of(self, kind: type[E]) -> list[E]:
        """All events of a kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    async def send(self, *commands: Command) -> None:
        """Send commands."""
        for command in commands:
            await self._transport.send(command)

    async def beep(self, text: str) -> None:
        """Say words, and do not stop talking."""
        await self.speak(beeps(text))

    async def speak(self, pcm: bytes) -> None:
        """Send sound; its time goes by at once."""
        for start in range(0, len(pcm), FRAME_BYTES):
            await self.send(AppendAudio(audio=pcm[start : start + FRAME_BYTES]))

    async def hush(self, duration_ms: int) -> None:
        """Say nothing for a while of audio time, which goes by at once."""
        for _ in range(duration_ms // FRAME_MS):
            await self.send(AppendAudio(audio=bytes(FRAME_BYTES)))

    async def hush_until(self, done: Callable[[], bool]) -> None:
        """Say nothing, a little faster than life, until something is true."""
        async with asyncio.timeout(self._patience_s):
            while not done():
                await self.hush(FRAME_MS)
                try:
                    async with asyncio.timeout(FRAME_MS / 4 / 1000):
                        self._news.clear()
                        await self._news.wait()
                except TimeoutError:
                    pass

    async def say(self, text: str) -> None:
        """Say words, and leave the floor."""
        await self.beep(text)
        await self.hush(800)

    async def response(self) -> ResponseResource:
        """Wait for the next response to be over."""
        self._responses_seen += 1
        seen = self._responses_seen
        await self.until(lambda: len(self.of(ResponseDone)) >= seen)
        return self.of(ResponseDone)[seen - 1].response

    async def is_answered(self, text: str = "hello again") -> None:
        """Say words and check that they are answered well."""
        await self.say(text)
        await self.check_answer(text)

    async def check_answer(self, text: str) -> None:
        """Check that the next response answers these words well."""
        check_words(await self.response(), text)
        assert self.of(TranscriptionCompleted)[-1].transcript == text

    async def check_failure(self, code: str = "replica_lost") -> ResponseResource:
        """Check that the next response fails for a reason."""
        response = await self.response()
        assert response.status == "failed", response
        assert response.status_details is not None
        assert response.status_details.error is not None
        assert response.status_details.error.code == code
        assert response.status_details.reason == code
        return response

    async def is_noticed(self) -> None:
        """Wait until the server knows that the caller speaks."""
        turns = len(self.of(SpeechStopped))
        await self.until(lambda: len(self.of(SpeechStarted)) > turns)

    async def is_understood(self, text: str) -> None:
        """Wait until the server knows what the caller said."""
        await self.until(
            lambda: any(each.transcript == text for each in self.of(TranscriptionCompleted))
        )

    async def response_begins(self) -> None:
        """Wait for the next response to be created."""
        await self.until(lambda: len(self.wire.created) > self._responses_seen)

    async def response_is_written(self) -> None:
        """Wait for the first words of the next response."""
        await self._until_first(AudioTranscriptDelta)

    async def response_sounds(self) -> None:
        """Wait for the first speech of the next response."""
        await self._until_first(AudioDelta)

    async def _until_first(self, kind: type[AudioTranscriptDelta] | type[AudioDelta]) -> None:
        number = self._responses_seen
        await self.until(
            lambda: any(delta.response_id in self.wire.created[number:] for delta in self.of(kind))
        )

    def check_all_is_told(self) -> None:
        """Check that every response is over, and that each was looked at."""
        assert self.wire.open_responses == []
        assert len(self.wire.done) == self._responses_seen


def check_words(response: ResponseResource, text: str) -> None:
    """Check that a response answers these words well."""
    assert response.status == "completed", response.status_details
    (item,) = response.output
    assert isinstance(item, MessageItem)
    (part,) = item.content
    assert isinstance(part, OutputAudio)
    assert text in (part.transcript or "")


@asynccontextmanager
async def caller_of(
    url: str,
    turn_detection: TurnDetectionChoice = "server_vad",
    *,
    patience_s: float = PATIENCE_S,
) -> AsyncIterator[Caller]:
    """Hold a call, and check at its end that nothing was left open."""
    transport = await WebSocketTransport.open(url, open_timeout_s=PATIENCE_S)
    caller = Caller(transport, patience_s)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(caller.read(), name="caller")
        patch = session_patch(turn_detection=turn_detection, transcription=True)
        await caller.send(UpdateSession(session=patch))
        yield caller
        caller.check_all_is_told()
        reading.cancel()
    await transport.close()
