"""The person's side of the conversation: from detector windows to turns, items and transcripts.

The counterpart of ``dialogue``, which it tells what the person does. This module must not know
commands of the wire, nor how an answer is made or stopped.
"""

from __future__ import annotations

from collections.abc import Iterable

from duologue.core.audio import samples_to_ms
from duologue.duplex_plugins.contract import (
    Audio,
    Capabilities,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.engines.payloads import EndOfTurn, Payload, Transcript, VoiceActivity
from duologue.protocol.commands import CreateItem
from duologue.protocol.duplex.config import OverlapPolicy
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCleared,
    IdleTimeoutTriggered,
    ItemAdded,
    SpeechStarted,
    SpeechStopped,
)
from duologue.protocol.session_config import ServerVad, SessionConfig
from duologue.sessions.conversation import Conversation
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.extensions import Extensions
from duologue.sessions.hearing.floor import FloorEvent
from duologue.sessions.hearing.listening import Listening, PersonTurn, Utterance
from duologue.sessions.hearing.soft_pause import SoftPause
from duologue.sessions.hearing.stalled_input import StalledInput
from duologue.sessions.hearing.transcript_wire import TranscriptWire
from duologue.sessions.hearing.transcription import TranscriptReady
from duologue.sessions.hearing.turn_taking import (
    Answering,
    TurnCommitted,
    TurnConfirmed,
    TurnDropped,
    TurnEvent,
    TurnPausing,
    TurnResumed,
    TurnTaking,
)
from duologue.sessions.history.prompt_view import speech_in
from duologue.sessions.speaking.speaking import Speaking

UNLIKELY = 0.1
"""A window below it is no speech by any threshold worth setting: nothing is compared then."""


class Person:
    """What the person says, and what follows from it.

    Args:
        min_interruption_ms: Speech over an audible answer that stops it, unless the client has
            said.
        soft_pause_ms: How long the answer is held while that is undecided; 0: not at all.
        extensions: What is said to a client that asked for more than the Realtime API.
    """

    __slots__ = (
        "_answering",
        "_capabilities",
        "_config",
        "_conversation",
        "_dialogue",
        "_extensions",
        "_listening",
        "_min_interruption_ms",
        "_soft_pause",
        "_speaking",
        "_stalled_input",
        "_tells_audio",
        "_transcripts",
        "_turns",
        "_untranscribed",
        "away",
        "heard_at",
    )

    def __init__(
        self,
        config: SessionConfig,
        capabilities: Capabilities,
        listening: Listening,
        conversation: Conversation,
        speaking: Speaking,
        dialogue: Dialogue,
        min_interruption_ms: int,
        soft_pause_ms: int,
        now: float,
        extensions: Extensions | None = None,
    ) -> None:
        self.heard_at = now
        """When audio last came in, or the session began."""

        self.away = False
        """Nobody can speak: the connection is lost."""

        self._config = config
        self._capabilities = capabilities
        self._tells_audio = capabilities.hears_audio
        self._listening = listening
        self._conversation = conversation
        self._speaking = speaking
        self._dialogue = dialogue
        self._min_interruption_ms = min_interruption_ms
        self._soft_pause = SoftPause(speaking, listening, soft_pause_ms) if soft_pause_ms else None
        self._stalled_input = StalledInput(listening)
        self._turns = TurnTaking(listening, self._interruption_ms(config))
        self._extensions = extensions
        self._answering = Answering(active=False, audible=False)
        self._transcripts = TranscriptWire(capabilities.input_rate_hz)
        self._untranscribed: dict[str, float] = {}
        """Committed turns whose transcript is still to come, and since when; oldest first."""

    def configure(self, config: SessionConfig, now: float) -> None:
        """Use another configuration from now on."""
        self._config = config
        turn = self._listening.turn
        self._listening.configure(config)
        self._turns.min_interruption_ms = self._interruption_ms(config)
        self._tell_if_abandoned(turn, now)

    def append(self, wire: bytes, now: float) -> None:
        """Take audio from the microphone.

        Raises:
            LimitExceeded: The buffer is full; nothing changed.
        """
        frame = self._listening.append(wire)
        if self._listening.detecting:
            self._listening.watch_detector(now)
        self.heard_at = now
        if self._speaking.echo is not None:
            self._speaking.echo.arrived(self._clock_offset())
        if frame is not None and self._tells_audio:
            self._dialogue.tell(Audio(frame), now)

    def commit(self, now: float) -> None:
        """Make a turn of all that is buffered: the client says so.

        Raises:
            ProtocolError: There is too little of it; it stays buffered.
        """
        self._commit(self._listening.commit_all(), now)

    @property
    def is_being_heard(self) -> bool:
        """Somebody is known to be speaking, or is still to be understood."""
        turn = self._listening.turn
        speaks = turn is not None and turn.confirmed and not self.away
        return speaks or bool(self._untranscribed)

    @property
    def speech_ms(self) -> int:
        """Speech in the current turn so far, without pauses."""
        return self._listening.speech_ms

    def commit_if_spoken(self, now: float) -> bool:
        """Make a turn of what is buffered, unless turns are detected and this is none.

        Raises:
            ProtocolError: There is too little of it; it stays buffered.
        """
        if self._listening.detecting and not self._listening.holds_speech():
            return False
        self.commit(now)
        return True

    def create_item(self, command: CreateItem, now: float) -> None:
        """Put an item of the client into the conversation; have its speech transcribed.

        Raises:
            ClientError: It cannot be put there; nothing changed.
        """
        hears = self._listening.has_recogniser
        speech = speech_in(command.item) if hears else None
        items, audio_format = self._listening.items, self._config.input_format
        if speech is not None:
            index, wire = speech
            items.check_room(len(wire), audio_format, f"item.content[{index}].audio")
        for event in self._conversation.create(command, hears=hears):
            self._speaking.emit(event)
            if speech is not None and isinstance(event, ItemAdded):
                index, wire = speech
                items.add(event.item.id, wire, audio_format, now)
                self._transcripts.place(event.item.id, index)
                self._untranscribed[event.item.id] = now

    def clear(self, now: float) -> None:
        """Forget all that is buffered."""
        turn = self._listening.turn
        self._listening.clear()
        self._speaking.emit(AudioCleared())
        self._tell_if_abandoned(turn, now)

    def go_away(self) -> None:
        """The connection is lost: there is nobody to be silent."""
        self.away = True

    def be_back(self, now: float) -> None:
        """Another connection has come: count silences from now on."""
        self.away = False
        self.heard_at = now
        self._listening.audio.end_utterance()  # half a sample, whose whole is sent again
        self._dialogue.count_anew(now)

    def end_turn(self, now: float) -> None:
        """End the turn that is going on: the client has stopped sending."""
        self._act(self._weigh(self._stalled_input.end_turn(), now), now)

    def let_pass(self, timeout_s: float, now: float) -> None:
        """Let time pass.

        Args:
            timeout_s: How long a committed turn waits for its transcript.
        """
        if not self.away and self._stalled_input.is_over(self.heard_at, now):
            self.end_turn(now)
            self.heard_at = now
        if self._listening.items.due_at is not None:
            self._listening.items.work_off(now)
        if (idle_at := self.idle_at()) is not None and now >= idle_at:
            self.be_idle(now)
        self.fail_untranscribed(timeout_s, now)

    def due_at(self) -> float | None:
        """When ``let_pass`` has something to do, apart from time-outs; ``None``: not yet known."""
        due, idle_at = self._listening.items.due_at, self.idle_at()
        if idle_at is not None and (due is None or idle_at < due):
            due = idle_at
        if not self.away:
            stalls_at = self._stalled_input.due_at(self.heard_at)
            if stalls_at is not None and (due is None or stalls_at < due):
                due = stalls_at
        return due

    def idle_at(self) -> float | None:
        """When the person will have been silent for too long after an answer; ``None``: never."""
        detection, answered_at = self._config.turn_detection, self._dialogue.answered_at
        if not isinstance(detection, ServerVad) or detection.idle_timeout_ms is None:
            return None
        if answered_at is None or self._speaking.active or not self._listening.detecting:
            return None
        if self.away:
            return None
        if self._listening.turn is not None:
            return None
        played_at = max(answered_at, self._speaking.playback.busy_until)
        return played_at + detection.idle_timeout_ms / 1000

    def be_idle(self, now: float) -> None:
        """Make an empty turn of the silence, so that the assistant speaks up."""
        detection = self._config.turn_detection
        assert isinstance(detection, ServerVad)
        item_id, (start_ms, end_ms) = self._listening.take_silence(detection.idle_timeout_ms or 0)
        self._dialogue.moved_on()
        self._speaking.emit(
            IdleTimeoutTriggered(audio_start_ms=start_ms, audio_end_ms=end_ms, item_id=item_id)
        )
        for event in self._conversation.commit_silence(item_id):
            self._speaking.emit(event)
        if self._config.transcription is not None:
            for event in self._transcripts.nothing_said(item_id, end_ms - start_ms):
                self._speaking.emit(event)
        self._dialogue.tell_conversation(now)
        if detection.create_response:
            self._dialogue.answer_when_free()

    def on_output(self, key: str, payload: Payload, now: float) -> None:
        """Take what a detector or the recogniser (of the item ``key``) has to say."""
        match payload:
            case VoiceActivity():
                self._stalled_input.judged_at = now
                if payload.probability > UNLIKELY and self._is_own_voice(payload.end_sample):
                    payload = VoiceActivity(0.0, payload.end_sample)
                self._act(self._weigh(self._listening.on_activity(payload), now), now)
                if self._soft_pause is not None:
                    self._soft_pause.weigh(self._answering.active, now)
            case EndOfTurn():
                self._act(self._weigh(self._listening.on_end_of_turn(payload), now), now)
            case Transcript():
                ready = self._listening.on_transcript(key, payload)
                if ready is not None:
                    self._transcript(ready, now)
            case _:
                pass

    def detector_ended(self, code: str) -> None:
        """The detector is gone; clients may still commit by hand."""
        self._listening.detector_failed(code)

    def recogniser_ended(self, item_id: str, code: str, now: float) -> None:
        """The recogniser of a turn is gone; another one may take its place."""
        if self._listening.recogniser_ended(item_id, code):
            # One that ended without a word and without a reason has failed all the same.
            self._no_transcript(item_id, code or ErrorCode.STAGE_FAILED, now)

    def untranscribed_since(self) -> float | None:
        """Since when the committed turn that waits longest has waited for its transcript."""
        return next(iter(self._untranscribed.values()), None)

    def fail_untranscribed(self, timeout_s: float, now: float) -> None:
        """Give up the recognisers of turns that were committed too long ago: they hang."""
        for item_id, since in list(self._untranscribed.items()):
            if now < since + timeout_s:
                break
            self._listening.give_up_transcript(item_id)
            self._no_transcript(item_id, ErrorCode.STAGE_TIMEOUT, now)

    def _is_own_voice(self, end_sample: int) -> bool:
        """Tell whether what is heard there is what is being played."""
        echo, audio = self._speaking.echo, self._listening.audio
        if echo is None:
            return False
        end_s, offset = end_sample / audio.rate_hz, self._clock_offset()
        if not echo.listens(end_s, offset, self._speaking.playback.busy_until):
            return False
        return echo.is_echo(audio.read(end_sample - echo.heard_samples, end_sample), offset)

    def _clock_offset(self) -> float:
        """What the time at which the newest sample came is ahead of the sample clock."""
        audio = self._listening.audio
        return self.heard_at - audio.next_sample / audio.rate_hz

    def _interruption_ms(self, config: SessionConfig) -> int:
        asked_ms = None if config.duplex is None else config.duplex.overlap_barge_in_ms
        return self._min_interruption_ms if asked_ms is None else asked_ms

    def _weigh(self, events: Iterable[FloorEvent], now: float) -> Iterable[TurnEvent]:
        speaking = self._speaking
        active = speaking.active is not None or speaking.playback.lead_s(now) > 0
        self._answering = Answering(active, active and speaking.is_audible(now))
        return self._turns.on_floor(events, self._answering, self._config.interrupts)

    def _act(self, events: Iterable[TurnEvent], now: float) -> None:
        rate_hz = self._capabilities.input_rate_hz
        for event in events:
            match event:
                case TurnConfirmed(turn=turn, interrupts=interrupts):
                    start_ms = samples_to_ms(turn.start_sample, rate_hz)
                    if self._extensions is not None and self._answering.active:
                        self._tell_overlap(self._extensions, interrupts)
                    self._speaking.emit(
                        SpeechStarted(audio_start_ms=start_ms, item_id=turn.item_id)
                    )
                    if interrupts:
                        self._dialogue.interrupt(now)
                    self._tell(TurnKind.STARTED, turn.item_id, turn.start_sample, now)
                case TurnPausing(turn=turn, sample=sample):
                    self._tell(TurnKind.PAUSING, turn.item_id, sample, now)
                case TurnResumed(turn=turn, sample=sample):
                    self._tell(TurnKind.RESUMED, turn.item_id, sample, now)
                case TurnCommitted(utterance=utterance):
                    end_ms = samples_to_ms(utterance.end_sample, rate_hz)
                    self._speaking.emit(
                        SpeechStopped(audio_end_ms=end_ms, item_id=utterance.item_id)
                    )
                    self._commit(utterance, now)
                    if self._config.answers_turns:
                        self._dialogue.answer_when_free()

                case TurnDropped(speech_ms=speech_ms):
                    if self._extensions is not None:
                        self._extensions.overlap("drop", "short_ack", self._policy, speech_ms)

    @property
    def _policy(self) -> OverlapPolicy:
        return "barge_in_on_speech" if self._config.interrupts else "listen_only"

    def _tell_overlap(self, extensions: Extensions, interrupts: bool) -> None:
        speech_ms = self._listening.speech_ms
        if not interrupts:
            extensions.overlap("listen", "policy_listen_only", self._policy, speech_ms)
        else:
            reason = "speech" if self._answering.audible else "unheard_answer"
            extensions.overlap("barge_in", reason, self._policy, speech_ms)

    def _tell_if_abandoned(self, turn: PersonTurn | None, now: float) -> None:
        if turn is not None and turn.confirmed and self._listening.turn is None:
            self._tell(TurnKind.ABANDONED, turn.item_id, self._listening.audio.next_sample, now)

    def _tell(self, kind: TurnKind, item_id: str, sample: int, now: float) -> None:
        self._tell_turn(Turn(kind, item_id, sample), now)

    def _tell_turn(self, turn: Turn, now: float) -> None:
        if self._extensions is not None:
            self._extensions.turn(turn.kind, now)
        self._dialogue.tell_conversation(now)
        self._dialogue.tell(turn, now)

    def _commit(self, utterance: Utterance, now: float) -> None:
        self._dialogue.moved_on()
        for event in self._conversation.commit_speech(utterance.item_id):
            self._speaking.emit(event)
        turn = Turn(
            TurnKind.COMMITTED, utterance.item_id, utterance.end_sample, utterance.recording
        )
        self._tell_turn(turn, now)
        if utterance.transcript is not None:
            self._transcript(utterance.transcript, now)
        elif utterance.transcribing:
            self._untranscribed[utterance.item_id] = now
        elif self._config.transcription is not None or self._capabilities.reads_transcripts:
            # Nobody here can write down what was said, and somebody waits for it.
            self._no_transcript(utterance.item_id, ErrorCode.NO_RECOGNISER, now)

    def _transcript(self, ready: TranscriptReady, now: float) -> None:
        if self._config.transcription is not None:
            for event in self._transcripts.events(ready):
                self._speaking.emit(event)
        text = ready.text
        if ready.kind is TranscriptKind.FINAL:
            self._untranscribed.pop(ready.item_id, None)
            self._conversation.set_transcript(ready.item_id, ready.text)
            # An item of the client may hold more than speech.
            text = self._conversation.text_of(ready.item_id) or text
        self._dialogue.tell_conversation(now)
        self._dialogue.tell(UserTranscript(ready.item_id, text, ready.kind), now)

    def _no_transcript(self, item_id: str, code: str, now: float) -> None:
        """A committed turn stays without text: an answer that waits for it cannot come."""
        self._untranscribed.pop(item_id, None)
        if self._config.transcription is not None:
            self._speaking.emit(self._transcripts.failed(item_id, code))
        self._conversation.lose_transcript(item_id, code)
        if self._capabilities.reads_transcripts:
            self._dialogue.fail_waiting(item_id, code, now)
