"""Speaking: the session's responses, from what a plugin says to events at the pace of playback.

Owns the responses, the output buffer and the playback ledger. This module must not know why a
response begins or is stopped, or what the person is doing.
"""

from __future__ import annotations

from collections.abc import Sequence

from duologue.codecs.encoder import output_encoder
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import PluginError
from duologue.core.ids import IdMaker
from duologue.engines.payloads import SpeechMark, TokenUsage
from duologue.protocol.events import Event
from duologue.protocol.response_config import ResponseConfig
from duologue.protocol.response_events import (
    AudioTranscriptDelta,
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    ResponseCreated,
)
from duologue.sessions.echo.echo import EchoJudge
from duologue.sessions.history.history import History
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.output_buffer import (
    NextItem,
    OutputBuffer,
    OutputLimits,
    OutputOverflow,
    Speech,
    booked_bytes,
)
from duologue.sessions.speaking.output_items import OutputCall, OutputItem, OutputMessage
from duologue.sessions.speaking.pacing import Pace, Pacing
from duologue.sessions.speaking.playback import PlaybackLedger
from duologue.sessions.speaking.response import Response, ResponseInput, ResponseState
from duologue.sessions.speaking.response_wire import (
    arguments_delta,
    audio_delta,
    resource,
    text_delta,
)
from duologue.sessions.speaking.showing import Showing
from duologue.sessions.speaking.silencer import Silencer


def output_limits(settings: SessionSettings) -> OutputLimits:
    """Return the limits of what may wait."""
    return OutputLimits(
        audio_ms=settings.output_buffer_ms,
        held_bytes=settings.output_buffer_bytes,
        events=settings.output_events,
    )


_DRAINING = ResponseState.DRAINING
"""Compared with for every frame, and members of an enumeration are slow to look up."""


class Speaking:
    """All responses of one session.

    Args:
        rate_hz: Rate of the PCM that the plugin delivers.
    """

    __slots__ = (
        "_conversation_id",
        "_ended",
        "_extended",
        "_new_id",
        "_responses",
        "_sent_samples",
        "_showing",
        "buffer",
        "echo",
        "has_news",
        "has_spoken",
        "overflowed",
        "pacing",
        "playback",
        "rate_hz",
        "silencer",
    )

    def __init__(
        self, history: History, limits: OutputLimits, pace: Pace, rate_hz: int, new_id: IdMaker
    ) -> None:
        self.buffer = OutputBuffer(limits, rate_hz)
        self.silencer = Silencer()
        self.playback = PlaybackLedger(rate_hz, self.silencer)
        self.echo: EchoJudge | None = None
        """Is told what is played."""

        self.rate_hz = rate_hz
        self.overflowed = False
        self.has_news = False
        """Something has happened besides sound that was said and sent."""
        self.has_spoken = False
        """Something was said in this session, aloud or in writing."""
        self._sent_samples: dict[str, int] = {}
        self._ended: list[Response] = []
        self._new_id = new_id
        self._conversation_id = new_id("conv")
        self._showing = Showing(history, self.buffer, self._conversation_id)
        self._extended = False
        self._responses: dict[str, Response] = {}
        self.pacing = Pacing(pace, self.buffer, self.playback, rate_hz)

    def extend(self) -> None:
        """Say more than the Realtime API has: the client asked for it."""
        self._extended = self._showing.extended = True

    def __len__(self) -> int:
        return len(self._responses)

    @property
    def active(self) -> Response | None:
        """The response of the default conversation that has not ended."""
        for response in self._responses.values():
            if not response.out_of_band:
                return response
        return None

    def get(self, response_id: str) -> Response | None:
        """Return a response that has not ended, by its id."""
        return self._responses.get(response_id)

    def all(self) -> list[Response]:
        """Return the responses that have not ended."""
        return list(self._responses.values())

    def emit(self, event: Event) -> None:
        """Send an event that waits for nothing.

        Where it does not fit, the client takes nothing in: ``overflowed`` is set, and the session
        ends.
        """
        try:
            self.buffer.put(event)
        except OutputOverflow:
            self.overflowed = self.has_news = True

    def begin(self, response_id: str, config: ResponseConfig, now: float) -> Response:
        """Open a response."""
        encoder = output_encoder(self.rate_hz, config.output_format)
        response = Response(response_id, config, now, encoder)
        self.emit(
            ResponseCreated(response=resource(response, self._conversation_id, "in_progress"))
        )
        self.buffer.open(response_id)
        self.has_news = True
        self._responses[response_id] = response
        return response

    def say_text(self, response: Response, text: str, now: float) -> None:
        """Add text: the transcript of what is spoken, or the answer itself.

        Raises:
            OutputOverflow: The response does not fit any more.
        """
        message = response.message or self._begin_message(response)
        message.spoken.text += text
        response.progress_at = now
        if response.audio and response.unsounded_since is None:
            response.unsounded_since = now
            self.has_news = True
        self.buffer.put_response(response.id, text_delta(response, message, text))

    def say_audio(
        self, response: Response, pcm: bytes, marks: Sequence[SpeechMark], now: float
    ) -> None:
        """Add speech, s16le mono at ``rate_hz``. In a written answer it counts as sent, unheard.

        Raises:
            OutputOverflow: The response does not fit any more.
            PluginError: That is no whole number of samples.
        """
        if len(pcm) % SAMPLE_BYTES:
            raise PluginError(f"the plugin says {len(pcm)} bytes: no whole number of samples")
        samples = len(pcm) // SAMPLE_BYTES
        response.progress_at = now
        if not response.audio:
            self.has_spoken = True
            if response.credited:
                self._count_sent(response, samples)
            return
        message = response.message
        if message is None:
            if not pcm:
                return
            message = self._begin_message(response)
        if marks:
            message.mark(marks)
        if pcm:
            self.buffer.put_speech(response.id, pcm)
            response.unsounded_since = None
            message.spoken.samples += samples
            if self.pacing.merging:
                self.pacing.has_grown(response.id)

    def call(
        self, response: Response, key: str, name: str, arguments: str, whole: bool, now: float
    ) -> None:
        """Add a piece of a function call, or all of it.

        Args:
            key: The plugin's name for the call.
            whole: It is the last piece.

        Raises:
            OutputOverflow: The response does not fit any more.
            PluginError: The call is over already.
        """
        response.progress_at = now
        call = response.items[-1] if response.items else None
        if not isinstance(call, OutputCall) or call.key != key:
            if any(earlier.key == key for earlier in response.calls):
                raise PluginError(f"the plugin goes on with call '{key}', which is over")
            call = OutputCall(
                self._new_id("item"), len(response.items), key, name, self._new_id("call")
            )
            self._begin_item(response, call)
            response.message = None
        elif call.whole:
            raise PluginError(f"the plugin goes on with call '{key}', which is over")
        if arguments:
            self.buffer.put_response(response.id, arguments_delta(response, call, arguments))
            call.arguments.append(arguments)
        call.whole = whole

    def generated(
        self, response: Response, status: str, reason: str, usage: TokenUsage | None
    ) -> None:
        """Everything of a response is said; it ends when all of it is sent."""
        response.ended_with(status, reason)
        response.usage = usage
        message = response.message
        if message is not None and status == "failed":
            # Text may have been ahead of the audio that now never comes.
            if message.spoken.cut_sample is None:
                message.spoken.cut_at(message.spoken.samples)
        elif response.items and status == "completed":
            response.items[-1].complete()
        elif message is not None:
            message.complete()
        response.advance(ResponseInput.GENERATED)
        self.buffer.complete(response.id)
        self.pacing.has_ended()
        self._end_if_delivered(response)

    def cut_off(
        self, response: Response, status: str, reason: str, now: float
    ) -> list[tuple[OutputMessage, int]]:
        """End a response now: drop what was not sent.

        A function call of which the client has seen the beginning goes out as far as it was
        generated; one that it has not seen never was.

        Returns:
            The messages of which not all was heard, and how many samples were.
        """
        response.ended_with(status, reason)
        response.advance(ResponseInput.STOPPED)
        self.buffer.clear(response.id)
        self.pacing.begin_anew()
        del response.items[response.shown :]
        cut: list[tuple[OutputMessage, int]] = []
        for message in response.messages:
            heard = self.playback.interrupt(message.id, now) if message.audio else 0
            if message is response.items[-1] or (message.audio and heard < message.spoken.samples):
                if message.audio:
                    message.spoken.cut_at(heard)
                cut.append((message, heard))
        self._close(response, delivered=False)
        return cut

    def pull(self, now: float, max_bytes: int) -> list[Event]:
        """Return what may be sent now, in order, about ``max_bytes`` of it at most."""
        events: list[Event] = []
        buffer, pacing = self.buffer, self.pacing
        pacing.paced_until = None  # what still waits then finds out afresh
        room = max_bytes
        while room > 0 and buffer.held_bytes:
            event = buffer.take_event() if buffer.held_events else None
            if event is None:
                speech = pacing.take(now)
                if speech is None:
                    break
                room -= len(speech.pcm)
                events.append(self._deliver_speech(speech, now))
            elif isinstance(event, NextItem):
                self._turn_to_next_item(self._responses[event.response_id])
            else:
                room -= booked_bytes(event)
                if isinstance(
                    event, AudioTranscriptDelta | OutputTextDelta | FunctionCallArgumentsDelta
                ):
                    self._deliver_text(event)
                events.append(event)
        return events

    def has_output(self) -> bool:
        """Tell whether ``pull`` would return something; let time pass first."""
        if not self.buffer.held_bytes:
            return False
        return self.pacing.paced_until is None or self.buffer.has_event()

    def take_news(self) -> tuple[dict[str, int], list[Response]]:
        """Return what is new since the last call.

        Returns:
            The samples sent, by response, which may be granted as credit; and the responses that
            have ended.
        """
        self.has_news = False
        sent, self._sent_samples = self._sent_samples, {}
        ended, self._ended = self._ended, []
        return sent, ended

    # Items of a response: begun when they are generated, shown when their turn has come

    def _begin_message(self, response: Response) -> OutputMessage:
        self.has_spoken = True
        message = response.new_message(self._new_id("item"))
        if self.playback.only_acknowledged:
            message.spoken.cut_at(0)
        self._begin_item(response, message)
        response.message = message
        return message

    def _begin_item(self, response: Response, item: OutputItem) -> None:
        self.has_news = True
        if response.items:
            self.buffer.put_response(response.id, NextItem(response.id))
            response.items[-1].complete()
            self.pacing.has_ended()
        response.items.append(item)
        if response.state is ResponseState.CREATED:
            self._showing.show(response, item)
            response.advance(ResponseInput.FIRST_OUTPUT)

    def _turn_to_next_item(self, response: Response) -> None:
        self.has_news = True
        self._showing.turn_over(response)
        self._end_if_delivered(response)

    def _deliver_speech(self, speech: Speech, now: float) -> Event:
        response, pcm = self._responses[speech.response_id], speech.pcm
        message = response.current
        assert isinstance(message, OutputMessage), "speech belongs to a message"
        message.sent_speech = True
        samples = len(pcm) // SAMPLE_BYTES
        self.playback.on_sent(message.id, samples, now)
        if self.echo is not None:
            starts_at = self.playback.busy_until - samples / self.rate_hz
            self.echo.played(pcm, starts_at, now)
        if response.credited:
            self._count_sent(response, samples)
        encoder = response.encoder
        wire = pcm if encoder.passes else encoder.encode(pcm)
        event = audio_delta(response, message, wire, self._extended)
        if response.state is _DRAINING:
            self._end_if_delivered(response)
        return event

    def _count_sent(self, response: Response, samples: int) -> None:
        self._sent_samples[response.id] = self._sent_samples.get(response.id, 0) + samples
        self.has_news = True

    def _deliver_text(
        self, event: AudioTranscriptDelta | OutputTextDelta | FunctionCallArgumentsDelta
    ) -> None:
        response = self._responses.get(event.response_id)
        if response is not None:
            if isinstance(message := response.current, OutputMessage):
                message.delivered_text.append(event.delta)
            self._end_if_delivered(response)

    def _end_if_delivered(self, response: Response) -> None:
        if response.state is ResponseState.DRAINING and self.buffer.is_empty(response.id):
            response.advance(ResponseInput.DELIVERED)
            self._close(response, delivered=True)

    def _close(self, response: Response, *, delivered: bool) -> None:
        self._showing.close(response, delivered=delivered)
        del self._responses[response.id]
        self._ended.append(response)
        self.has_news = True

    def is_audible(self, now: float) -> bool:
        """Tell whether the person has heard something of what is being said."""
        playback, response = self.playback, self.active
        if response is not None and any(
            playback.heard_samples(item.id, now) > 0 for item in response.items
        ):
            return True
        # An answer that is all sent may still be playing while the next one begins.
        return any(playback.heard_samples(item_id, now) > 0 for item_id in playback.playing(now))

    def stop_playback(self, now: float) -> list[tuple[str, int]]:
        """Stop the playback of responses that have ended; returns items and heard samples.

        Those beside the conversation go on.
        """
        self.pacing.begin_anew()
        beside = [each for each in self.all() if each.out_of_band]
        self.silencer.withdraw_all({each.id for each in beside})
        spared = {item.id for each in beside for item in each.items}
        return [
            (item_id, self.playback.interrupt(item_id, now))
            for item_id in self.playback.playing(now)
            if item_id not in spared
        ]
