"""The call as a client sees it: events in, effects and state out. No await, no clock, no socket.

It keeps the transcript of both sides, what is being played, when things happened, and does what a
good client owes its server at an interruption: stop the loudspeaker, and say how much was heard.
This module must not know transports or devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from duologue.clients.answers import Answer, Answers
from duologue.clients.effects import ClientEffect, Send, SilenceSpeaker
from duologue.clients.playback import Cut, Playback, Taken
from duologue.clients.reconnect.events import LineEvent
from duologue.clients.timing import CallTiming, InputClock
from duologue.clients.track import FromTrack, TrackAudio, TrackDone
from duologue.clients.transcript import LineState, Side, Transcript
from duologue.core.audio import ms_to_samples, samples_to_ms
from duologue.core.errors import CodecError, LimitExceeded
from duologue.protocol.commands import CancelResponse, ClearOutputAudio, RetrieveItem, TruncateItem
from duologue.protocol.duplex.events import ResyncRequired, SessionResumed
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import (
    AudioCommitted,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemRetrieved,
    OutputBufferCleared,
    OutputBufferStarted,
    OutputBufferStopped,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from duologue.protocol.items import (
    InputAudio,
    InputText,
    Item,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.protocol.json_codec import UnknownEvent
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    OutputItemAdded,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.protocol.response_resource import ResponseResource
from duologue.protocol.session_config import AnySession

EventOrUnknown = Event | UnknownEvent | FromTrack | LineEvent

_SILENT_ENDS = {"failed": LineState.FAILED, "completed": LineState.DONE}
"""How the line of an answer ends that no speech came of; otherwise it was cut."""


class CallMachine:
    """One call.

    Args:
        playback: What the loudspeaker takes from.
    """

    def __init__(self, playback: Playback) -> None:
        self.session: AnySession | None = None
        """As the server showed it last."""

        self.transcript = Transcript()
        self.timing = CallTiming()
        self.playback = playback
        self.input_clock = InputClock()
        self.last_seq: int | None = None
        """Number of the latest event, where the server numbers them."""

        self.server_plays = False
        """Speech comes on a track, as it is to be heard, and the server knows what was heard."""

        self._answers = Answers(playback.rate_hz)
        self._sounding: str | None = None
        """The response whose sound the server plays."""

    @property
    def active_response_id(self) -> str | None:
        """The response that has not ended."""
        active = self._answers.active
        return None if active is None else active.id

    @property
    def answering(self) -> bool:
        """An answer is being made, or heard."""
        sounds = self._sounding is not None or self.playback.waiting_samples > 0
        return sounds or self._answers.active is not None

    def unheard_since(self, moment: float) -> bool:
        """The server was to find speech, has found none since then, and is not answering."""
        if self.session is None or self.session.audio.input.turn_detection is None:
            return False
        return self.active_response_id is None and not self.timing.confirmed_since(moment)

    # What comes in

    def on_event(
        self, event: EventOrUnknown, seq: int | None, now: float
    ) -> Sequence[ClientEffect]:
        """Take an event of the server; of a type that is not known, only its number is noted."""
        if seq is not None:
            self.last_seq = seq
        match event:
            case AudioDelta():
                return self._hear(event, now)
            case TrackAudio():
                self._hear_track(event, now)
            case AudioTranscriptDelta() | OutputTextDelta():
                self._read(event, now)
            case SpeechStarted():
                return self._caller_speaks(event, now)
            case ResponseCreated(response=response):
                self._answers.begin(response.id, response.audio.output.format)
                self.timing.begin_response(response.id, now)
            case ResponseDone(response=response):
                self._end_response(response, now)
            case SessionCreated(session=session) | SessionUpdated(session=session):
                self.session = session
            case SessionResumed(session=session):
                self.session = session
            case ResyncRequired():
                self._resync(event)
            case _:
                self._note(event, now)
        return ()

    def came_back(self) -> Sequence[ClientEffect]:
        """Another connection, on which what was under way is not sent again: ask what has ended."""
        return [Send(RetrieveItem(item_id=item_id)) for item_id in self._answers.open_items()]

    def sent_audio(self, duration_s: float, now: float) -> None:
        """Book what the microphone said, as it is handed to the transport."""
        self.input_clock.sent(duration_s, now)

    def take(self, samples: int, now: float) -> Taken:
        """Hand samples to the loudspeaker, which begins to play them ``now``."""
        taken = self.playback.take(samples)
        self.played(taken, now)
        return taken

    def played(self, taken: Taken, now: float) -> None:
        """Note what the loudspeaker was given, and began to play ``now``."""
        offset = 0
        for item_id, count in taken.runs:
            if item_id is not None:
                self._played(item_id, count, now + offset / self.playback.rate_hz)
            offset += count

    # Interruptions

    def interrupt(self) -> Sequence[ClientEffect]:
        """Take the floor without speaking: stop the answer that is being made or heard."""
        effects: list[ClientEffect] = []
        active = self._answers.active
        if active is not None:
            effects.append(Send(CancelResponse(response_id=active.id)))
        if self._sounding is not None:
            effects.append(Send(ClearOutputAudio()))
        return (*effects, *self._stop_listening())

    def silenced(self, unplayed_samples: int = 0) -> Sequence[ClientEffect]:
        """The loudspeaker is silent: say how much of what was heard.

        Args:
            unplayed_samples: What it had taken and threw away.
        """
        effects: list[ClientEffect] = []
        for cut in self.playback.silence(unplayed_samples):
            if not self.server_plays:
                effects.append(Send(self._truncation(cut)))
            # The server knows better than any estimate which words that were.
            effects.append(Send(RetrieveItem(item_id=cut.item_id)))
            self._cut_line(cut)
        return effects

    def _truncation(self, cut: Cut) -> TruncateItem:
        return TruncateItem(
            item_id=cut.item_id,
            content_index=cut.content_index,
            audio_end_ms=samples_to_ms(cut.heard_samples, self.playback.rate_hz),
        )

    def _stop_listening(self) -> Sequence[ClientEffect]:
        self._answers.silence()
        return (SilenceSpeaker(),)

    def _caller_speaks(self, event: SpeechStarted, now: float) -> Sequence[ClientEffect]:
        turn = self.timing.turn(event.item_id)
        turn.confirmed_at = now
        turn.speech_from = self.input_clock.time_of(event.audio_start_ms)
        self.transcript.open(event.item_id, Side.CALLER)
        return self._stop_listening() if self._speech_interrupts() else ()

    def _speech_interrupts(self) -> bool:
        if self.session is None:
            return True
        if isinstance(self.session, DuplexSessionResource):
            return self.session.overlap_policy == "barge_in_on_speech"
        detection = self.session.audio.input.turn_detection
        return detection is None or detection.interrupt_response

    def _cut_line(self, cut: Cut) -> None:
        answer = self._answers.known(cut.item_id)
        if answer is not None:
            self.transcript.set_heard(
                cut.item_id, answer.alignment.heard_characters(cut.heard_samples)
            )
        self.transcript.end(cut.item_id, LineState.CUT)

    # Answers

    def _hear(self, event: AudioDelta, now: float) -> Sequence[ClientEffect]:
        response = self._answers.response(event.response_id)
        if response is None or response.silenced:
            return ()
        turn = self.timing.of_response(event.response_id)
        if turn is not None and turn.first_audio_at is None:
            turn.first_audio_at = now
        answer = self._answers.item(event.item_id, event.response_id)
        self.transcript.open(event.item_id, Side.ASSISTANT)
        try:
            pcm = response.decoder.decode(event.delta)
            missing = self.playback.put(event.item_id, event.content_index, pcm)
        except (CodecError, LimitExceeded):
            # Nobody can listen to an answer with holes in it.
            response.silenced = True
            return (Send(CancelResponse(response_id=response.id)), SilenceSpeaker())
        answer.alignment.add_audio(missing)
        answer.add_audio(pcm)
        return ()

    def _hear_track(self, event: TrackAudio, now: float) -> None:
        """Speech that is to be heard now; what does not fit is what nobody listened to."""
        turn = self.timing.of_response(event.response_id)
        if turn is not None and turn.first_audio_at is None:
            turn.first_audio_at = now
        self.transcript.open(event.item_id, Side.ASSISTANT)
        with suppress(LimitExceeded):
            self.playback.put(event.item_id, 0, event.pcm)
            self._answers.item(event.item_id, event.response_id).add_audio(event.pcm)

    def _read(self, event: AudioTranscriptDelta | OutputTextDelta, now: float) -> None:
        turn = self.timing.of_response(event.response_id)
        if turn is not None and turn.first_text_at is None:
            turn.first_text_at = now
        self.transcript.open(event.item_id, Side.ASSISTANT)
        self.transcript.add(event.item_id, event.delta)
        if isinstance(event, AudioTranscriptDelta):
            answer = self._answers.item(event.item_id, event.response_id)
            answer.alignment.add_text(event.delta)
        else:
            # What is written is read as it comes.
            self._read_all(event.item_id)

    def _read_all(self, item_id: str) -> None:
        line = self.transcript.get(item_id)
        if line is not None:
            self.transcript.set_heard(item_id, len(line.text))

    def _end_response(self, resource: ResponseResource, now: float) -> None:
        turn = self.timing.of_response(resource.id)
        if turn is not None:
            turn.done_at = now
        response = self._answers.end(resource.id)
        for item_id in () if response is None else response.items:
            if self.server_plays and resource.status == "completed":
                continue  # its sound goes on, or is still to come
            self._all_arrived(item_id)
            if self.playback.received_samples(item_id):
                self._finish_if_heard(item_id)
                continue
            # Nothing of it can be heard any more.
            self.transcript.end(item_id, _SILENT_ENDS.get(resource.status, LineState.CUT))

    def _all_arrived(self, item_id: str) -> None:
        answer = self._answers.known(item_id)
        if answer is not None:
            answer.alignment.complete()
        self.playback.finish(item_id)

    def _played(self, item_id: str, count: int, began_at: float) -> None:
        answer = self._answers.known(item_id)
        if answer is None:
            return
        heard = self.playback.heard_samples(item_id)
        self.transcript.set_heard(item_id, answer.alignment.heard_characters(heard))
        self._note_audible(answer, heard, count, began_at)
        self._finish_if_heard(item_id)

    def _note_audible(self, answer: Answer, heard: int, count: int, began_at: float) -> None:
        first = answer.first_audible
        if answer.audible or first is None or heard <= first:
            return
        answer.audible = True
        turn = self.timing.of_response(answer.response_id)
        if turn is not None and turn.audible_at is None:
            turn.audible_at = began_at + (first - (heard - count)) / self.playback.rate_hz

    def _finish_if_heard(self, item_id: str) -> None:
        playback = self.playback
        waits = playback.heard_samples(item_id) < playback.received_samples(item_id)
        if not waits and not playback.is_cut(item_id) and playback.is_finished(item_id):
            self.transcript.end(item_id, LineState.DONE)

    # Everything else

    def _note(self, event: EventOrUnknown, now: float) -> None:
        match event:
            case SpeechStopped(item_id=item_id, audio_end_ms=end_ms):
                turn = self.timing.turn(item_id)
                turn.end_of_turn_at = now
                turn.speech_until = self.input_clock.time_of(end_ms)
            case AudioCommitted(item_id=item_id):
                self._committed(item_id, now)
            case TranscriptionDelta(item_id=item_id, delta=delta):
                self.transcript.open(item_id, Side.CALLER)
                self.transcript.add(item_id, delta)
            case TranscriptionCompleted(item_id=item_id, transcript=text):
                self.timing.turn(item_id).transcribed_at = now
                self.transcript.open(item_id, Side.CALLER)
                self.transcript.set_text(item_id, text)
                self.transcript.end(item_id, LineState.DONE)
            case TranscriptionFailed(item_id=item_id):
                self.transcript.end(item_id, LineState.FAILED)
            case OutputItemAdded(item=MessageItem() as item, response_id=response_id):
                self._answers.item(item.id, response_id)
                self.transcript.open(item.id, Side.ASSISTANT)
            case AudioTranscriptDone(item_id=item_id, transcript=text):
                self.transcript.set_text(item_id, text)
            case OutputBufferStarted(response_id=response_id):
                self._sounding = response_id
            case OutputBufferStopped() | OutputBufferCleared():
                self._sounding = None
            case AudioDone(item_id=item_id) if not self.server_plays:
                self._all_arrived(item_id)
                self._finish_if_heard(item_id)
            case TrackDone(item_id=item_id):
                self._all_arrived(item_id)
                self._finish_if_heard(item_id)
            case TextDone(item_id=item_id, text=text):
                self.transcript.set_text(item_id, text)
                self.transcript.end(item_id, LineState.DONE)
            case ItemAdded(item=item):
                self._item_added(item, now)
            case ItemRetrieved(item=MessageItem(role="assistant") as item):
                self._item_retrieved(item)
            case ItemDeleted(item_id=item_id):
                self.transcript.remove(item_id)
            case _:
                pass

    def _committed(self, item_id: str, now: float) -> None:
        """A turn that was ended by hand has no other events."""
        turn = self.timing.turn(item_id)
        if turn.end_of_turn_at is None:
            turn.end_of_turn_at = now
        self.transcript.open(item_id, Side.CALLER)

    def _item_added(self, item: Item, now: float) -> None:
        """A typed message is a turn of its own; speech is known by its own events."""
        if not isinstance(item, MessageItem) or item.role != "user":
            return
        typed = [part.text for part in item.content if isinstance(part, InputText)]
        self.transcript.open(item.id, Side.CALLER)
        if typed:
            turn = self.timing.turn(item.id)
            turn.speech_until = turn.end_of_turn_at = now
            self.transcript.set_text(item.id, " ".join(typed))
            self.transcript.end(item.id, LineState.DONE)

    # After a gap that was too long

    def _resync(self, event: ResyncRequired) -> None:
        """Take the conversation as it stands; of a gap in the sound alone, all else follows."""
        snapshot, rate_hz = event.snapshot, self.playback.rate_hz
        self.session = snapshot.session
        self.playback.resume_at(
            {each.item_id: ms_to_samples(each.sent_ms, rate_hz) for each in snapshot.playback}
        )
        if event.reason == "sound_gap":
            return
        for item_id in self._answers.end_others(snapshot.active_response_id):
            self._all_arrived(item_id)
            self._finish_if_heard(item_id)
        for item in snapshot.items:
            if isinstance(item, MessageItem):
                self._show(item)

    def _show(self, item: MessageItem) -> None:
        """Write down what was said while nobody listened."""
        words = "".join(_said(item.content))
        known = self.transcript.get(item.id)
        if item.role == "system" or not words or (known is not None and known.text == words):
            return
        side = Side.CALLER if item.role == "user" else Side.ASSISTANT
        self.transcript.open(item.id, side)
        self.transcript.set_text(item.id, words)
        if item.status != "in_progress":
            self.transcript.end(item.id, LineState.DONE)

    def _item_retrieved(self, item: MessageItem) -> None:
        answer = self._answers.known(item.id)
        if answer is not None and item.status != "in_progress":
            # Its end may have been lost with a connection.
            self._answers.end(answer.response_id)
            self._all_arrived(item.id)
            self._finish_if_heard(item.id)
        heard = "".join(_said(item.content))
        if self.playback.is_cut(item.id):
            self.transcript.confirm_heard(item.id, heard)


def _said(content: Iterable[object]) -> Iterable[str]:
    for part in content:
        match part:
            case OutputAudio(transcript=text) if text:
                yield text
            case OutputText(text=text) | InputText(text=text):
                yield text
            case InputAudio(transcript=text) if text:
                yield text
            case _:
                pass
