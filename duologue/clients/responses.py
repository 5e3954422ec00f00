"""The answers of a call for programs: one object for each, which grows as the answer arrives.

They are collected only for those who asked for them. This module must not know playback: what was
heard of an answer stands in the call's transcript, by the ids of its items.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from duologue.clients.errors import CallEnded, CallError, EventsMissed
from duologue.clients.event_stream import Reader
from duologue.clients.machine import EventOrUnknown
from duologue.clients.track import TrackAudio, TrackDone
from duologue.codecs.decoder import InputDecoder, input_decoder
from duologue.core.errors import CodecError
from duologue.protocol.items import FunctionCallItem
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
)
from duologue.protocol.response_resource import (
    ResponseFailure,
    ResponseResource,
    ResponseStatus,
)

MAX_WAITING = 64
"""Answers that a reader may be behind."""

MAX_AUDIO_BYTES = 32 << 20
"""Audio that is kept of one answer: eleven minutes. Also what may wait for a reader in all."""

_UNEXPLAINED = ResponseFailure(
    type="server_error", code="response_failed", message="the server does not say why"
)


class Response:
    """One answer: what there is of it now, and ways to wait for more.

    ``await response.finished()`` waits for all of it; ``async for pcm in response.chunks()`` hands
    out its audio as it comes.
    """

    def __init__(
        self, resource: ResponseResource, rate_hz: int, *, server_plays: bool = False
    ) -> None:
        self.id = resource.id
        self.resource = resource
        """As the server showed it last; whole once the answer has ended."""

        self.text = ""
        """What is said, or written, so far."""

        self.calls: list[FunctionCallItem] = []
        """Functions that the model calls in it, with their arguments as JSON text."""

        self.item_ids: list[str] = []
        """Its items; ``call.transcript.get`` knows how much of each was heard."""

        self.rate_hz = rate_hz
        """Of ``audio``: s16le mono."""

        self._decoder: InputDecoder = input_decoder(resource.audio.output.format, rate_hz)
        self._server_plays = server_plays
        self._on_track = False
        """It is spoken, and its speech comes on a track."""
        self._audio = bytearray()
        self._missed = False
        self._error: CallError | None = None
        self._done = False
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Response {self.id} {self.status} {self.text[:40]!r}>"

    @property
    def audio(self) -> bytes:
        """The speech that has arrived: s16le mono at ``rate_hz``."""
        return bytes(self._audio)

    @property
    def audio_bytes(self) -> int:
        """How much speech has arrived."""
        return len(self._audio)

    @property
    def status(self) -> ResponseStatus:
        """``in_progress``, then how it ended; ``cancelled`` is an interruption."""
        return self.resource.status

    @property
    def error(self) -> ResponseFailure | None:
        """Why it failed, with a ``code`` and a ``message``; ``None`` unless it has."""
        if self.status != "failed":
            return None
        details = self.resource.status_details
        return _UNEXPLAINED if details is None or details.error is None else details.error

    @property
    def done(self) -> bool:
        """Nothing more comes of it."""
        return self._done

    async def finished(self) -> Response:
        """Wait until all of it is there, and return it.

        Raises:
            EventsMissed: It has more audio than is kept.
            CallError: The call ended first.
        """
        while not self._done:
            await self._change()
        self._check()
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        """Hand out its audio from the beginning, as it comes.

        Raises:
            EventsMissed: It has more audio than is kept.
            CallError: The call ended first.
        """
        async for start, end in self._growth():
            yield bytes(self._audio[start:end])

    async def _growth(self) -> AsyncIterator[tuple[int, int]]:
        given = 0
        while True:
            if len(self._audio) > given:
                start, given = given, len(self._audio)
                yield start, given
                continue
            self._check()
            if self._done:
                return
            await self._change()

    async def _change(self) -> None:
        """Every waiter clears what it saw: all are woken by the next one."""
        self._check()
        self._news.clear()
        await self._news.wait()

    def _check(self) -> None:
        if self._missed:
            raise EventsMissed(
                f"answer {self.id} has more than {MAX_AUDIO_BYTES} bytes of audio, and no more is "
                "kept. Read call.events() instead, or ask for a shorter answer."
            )
        if self._error is not None and not self._done:
            raise self._error

    # From the call

    def put(self, event: EventOrUnknown) -> None:
        """Take an event of this answer."""
        match event:
            case AudioDelta(delta=delta):
                self._hear(delta)
            case AudioTranscriptDelta(delta=delta):
                self.text += delta
                self._on_track = self._server_plays
            case OutputTextDelta(delta=delta):
                self.text += delta
            case OutputItemAdded(item=item):
                self.item_ids.append(item.id)
            case OutputItemDone(item=FunctionCallItem(status="completed") as item):
                self.calls.append(item)
            case ResponseDone(response=resource):
                self.resource = resource
                # On a track, what is said has yet to be heard.
                self._done = not (self._on_track and resource.status == "completed")
            case TrackAudio(pcm=pcm):
                self._keep(pcm)
            case TrackDone():
                self._done = True
            case _:
                return
        self._news.set()

    def end(self, error: CallError) -> None:
        """The call is over before this answer was."""
        self._error = error
        self._news.set()

    def _hear(self, delta: bytes) -> None:
        # The call cancels an answer that cannot be decoded; what was good of it stays.
        with suppress(CodecError):
            self._keep(self._decoder.decode(delta))

    def _keep(self, pcm: bytes) -> None:
        if len(self._audio) >= MAX_AUDIO_BYTES:
            self._missed = True
        else:
            self._audio += pcm


class ResponseStream(Reader[Response]):
    """One reader of answers: ``async for response in call.responses()``.

    Each is handed out when it begins. A reader may be behind by ``MAX_WAITING`` answers, or by
    ``MAX_AUDIO_BYTES`` of their audio.
    """

    def _is_full(self) -> bool:
        behind = sum(each.audio_bytes for each in self._waiting)
        return len(self._waiting) >= MAX_WAITING or behind > MAX_AUDIO_BYTES

    def _complaint(self, missed: int) -> str:
        return f"{missed} answers were missed: too many waited to be read"


class Responses:
    """Collects the answers of one call for all readers.

    Args:
        rate_hz: Of the audio that is handed out.
        past: Events of the call so far, as far as they are kept.
        server_plays: Speech comes on a track.
    """

    def __init__(
        self,
        rate_hz: int,
        past: Iterable[EventOrUnknown] = (),
        *,
        server_plays: bool = False,
    ) -> None:
        self._rate_hz = rate_hz
        self._server_plays = server_plays
        self._going_on: dict[str, Response] = {}
        self._streams: weakref.WeakSet[ResponseStream] = weakref.WeakSet()
        self._ended: tuple[CallError | None] | None = None
        self._past: list[Response] = []
        for event in past:
            begun = self._take(event)
            if begun is not None:
                self._past.append(begun)

    def open(self) -> ResponseStream:
        """Begin to read: the first reader from the beginning, others with the next answer."""
        stream = self.from_now()
        for response in self._past:
            stream.put(response)
        self._past = []
        return stream

    def from_now(self) -> ResponseStream:
        """Begin to read with the next answer."""
        stream = ResponseStream()
        if self._ended is not None:
            stream.end(*self._ended)
        self._streams.add(stream)
        return stream

    def put(self, event: EventOrUnknown) -> None:
        """Take an event of the call."""
        begun = self._take(event)
        if begun is not None:
            for stream in self._streams:
                stream.put(begun)

    def end(self, error: CallError | None) -> None:
        """The call is over."""
        self._ended = (error,)
        for response in self._going_on.values():
            response.end(error or CallEnded("the call ended before the answer did"))
        self._going_on.clear()
        for stream in self._streams:
            stream.end(error)

    def _take(self, event: EventOrUnknown) -> Response | None:
        if isinstance(event, ResponseCreated):
            response = Response(event.response, self._rate_hz, server_plays=self._server_plays)
            self._going_on[response.id] = response
            if len(self._going_on) > MAX_WAITING:
                # A server that never ends its answers; whoever waits for this one is told.
                forgotten = self._going_on.pop(next(iter(self._going_on)))
                forgotten.end(CallEnded("the server has not ended this answer"))
            return response
        response_id = (
            event.response.id
            if isinstance(event, ResponseDone)
            else getattr(event, "response_id", "")
        )
        going_on = self._going_on.get(response_id)
        if going_on is not None:
            going_on.put(event)
            if going_on.done:
                del self._going_on[response_id]
        return None
