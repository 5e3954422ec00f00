"""The session machine: inputs and ``now`` in, effects out. No await, no clock, no socket.

It composes parts that do not know each other: turn-taking (the person's floor), the dialogue
(the plugin and its responses), the conversation, and the engine streams. Each decision is made
in its own part; this module routes, and must not know wire formats, samples or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duologue.core.audio import samples_to_ms
from duologue.core.errors import ClientError, ProtocolError
from duologue.core.ids import IdMaker
from duologue.duplex_plugins.contract import (
    Audio,
    ConfigChanged,
    DuplexPlugin,
    ItemAdded,
    StageEnded,
    StageFailed,
    StageOutput,
    Tick,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.engines.payloads import AudioChunk, EndOfTurn, Transcript, VoiceActivity
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output
from duologue.protocol.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    ClearOutputAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.errors import ErrorCode, error_event
from duologue.protocol.events import (
    AudioCleared,
    ErrorEvent,
    Event,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
)
from duologue.protocol.response_config import response_config
from duologue.protocol.session_config import SessionConfig, SessionResource, to_wire
from duologue.protocol.session_merge import merge
from duologue.sessions.conversation import Conversation
from duologue.sessions.dialogue import CLIENT_CANCELLED, Dialogue
from duologue.sessions.effects import Effect, EndSession
from duologue.sessions.floor import FloorEvent
from duologue.sessions.history import History, view_of
from duologue.sessions.inputs import Rejected, SessionInput
from duologue.sessions.listening import Listening, Utterance
from duologue.sessions.output_buffer import OutputLimits, OutputOverflow
from duologue.sessions.plugin_config import plugin_config, supported_by
from duologue.sessions.plugin_host import PluginHost
from duologue.sessions.response import ResponseState
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking import Pace, Speaking
from duologue.sessions.streams import Owner, Stream, Streams
from duologue.sessions.transcript_wire import TranscriptWire
from duologue.sessions.transcription import TranscriptReady
from duologue.sessions.turn_taking import (
    Answering,
    TurnCommitted,
    TurnConfirmed,
    TurnEvent,
    TurnPausing,
    TurnResumed,
    TurnTaking,
)


class SessionMachine:
    """One session.

    Args:
        session_id: Also the first part of every engine request's id.
        model: The name that the client asked for; it is shown it again.
        plugin: The model's policy.
        config: What is in force at the start.
        settings: Limits and manners.
        detectors: Kinds of turn detection that the engine has stages for.
        new_id: Maker of ids for items and responses.
        now: The time of the start.
        wall_time: The same moment in Unix seconds, for ``expires_at``.
    """

    def __init__(
        self,
        session_id: str,
        model: str,
        plugin: DuplexPlugin,
        config: SessionConfig,
        settings: SessionSettings,
        *,
        detectors: frozenset[str],
        new_id: IdMaker,
        now: float,
        wall_time: float,
    ) -> None:
        self.id = session_id
        self.model = model
        self.config = config
        self.ended: str | None = None
        self._settings = settings
        self._expires_at = now + settings.max_duration_s
        self._expires_wall = int(wall_time + settings.max_duration_s)
        self._waiting_since: float | None = None
        self._end_announced = False
        self._answer_pending = False
        self.streams = Streams(session_id)
        capabilities = plugin.capabilities()
        self._capabilities = capabilities
        self._supported = supported_by(capabilities, detectors)
        self.history = History(settings.max_items)
        self.speaking = Speaking(
            self.history,
            _output_limits(settings),
            _pace(settings),
            capabilities.output_rate_hz,
            new_id,
        )
        self._conversation = Conversation(self.history, self.speaking.playback, new_id)
        self.listening = Listening(
            settings.listening,
            config,
            self.streams,
            new_id,
            rate_hz=capabilities.input_rate_hz,
            capacity_ms=settings.input_buffer_ms,
            retain=not capabilities.decides_turns,
            transcribe_always=capabilities.reads_transcripts,
        )
        self._turns = TurnTaking(self.listening, settings.listening.min_interruption_ms)
        self._transcripts = TranscriptWire(capabilities.input_rate_hz)
        host = PluginHost(plugin, plugin_config(config, capabilities), self.streams)
        self._dialogue = Dialogue(
            host,
            self.speaking,
            self.history,
            self.streams,
            new_id,
            settings.max_out_of_band_responses,
        )
        self._dialogue.own_config = response_config(config)
        self._tick_s = None if capabilities.tick_ms is None else capabilities.tick_ms / 1000
        self._ticks = 0
        self._opened_at = self._heard_at = now

    # Life: open, apply, on_timer, pull, close

    def open(self, now: float) -> Sequence[Effect]:
        """Greet the client; nothing may be applied before."""
        self._emit(SessionCreated(session=self._resource()))
        self._dialogue.tell(ConfigChanged(plugin_config(self.config, self._capabilities)), now)
        return self._settle(now)

    def apply(self, item: SessionInput, now: float) -> Sequence[Effect]:
        """Take one input. A client's mistake becomes one ``error`` event; nothing else changes.

        Raises:
            PluginError: The plugin broke its contract; the session must be closed.
        """
        if self.ended is not None:
            return ()
        if isinstance(item, AppendAudio):
            self._append(item, now)
        elif isinstance(item, Output | Ended):
            stream = self.streams.accept(item)
            if stream is not None:
                self._engine_event(stream, item, now)
        elif isinstance(item, Rejected):
            self._emit(ErrorEvent(error=item.error))
        else:
            try:
                self._command(item, now)
            except ClientError as exc:
                self._emit(error_event(exc, item.event_id))
        return self._settle(now)

    def on_timer(self, now: float) -> Sequence[Effect]:
        """Let time pass; early calls do nothing."""
        if self.ended is not None:
            return ()
        settings = self._settings
        if now >= self._expires_at:
            return self.end(ErrorCode.SESSION_EXPIRED)
        self.speaking.let_pass(now)
        if self._waits_for_client(now) >= settings.stall_limit_s:
            return self.end(ErrorCode.CLIENT_TOO_SLOW)
        while self._tick_s is not None and now >= self._next_tick(self._tick_s):
            self._ticks += 1
            self._dialogue.tell(Tick(self._ticks), now)
        if now - self._heard_at >= settings.listening.stalled_input_s and self.listening.turn:
            self._turn_events(self._floor(self.listening.floor.force_end(), now), now)
            self._heard_at = now
        self._dialogue.fail_silent(settings.response_timeout_s, now)
        return self._settle(now)

    def next_deadline(self) -> float:
        """When ``on_timer`` wants to be called next."""
        deadline = self._expires_at
        if (paced := self.speaking.paced_until) is not None and paced < deadline:
            deadline = paced
        if self._tick_s is not None:
            deadline = min(deadline, self._next_tick(self._tick_s))
        if self._waiting_since is not None:
            deadline = min(deadline, self._waiting_since + self._settings.stall_limit_s)
        if (silent := self._dialogue.silent_since()) is not None:
            deadline = min(deadline, silent + self._settings.response_timeout_s)
        if self.listening.turn is not None:
            deadline = min(deadline, self._heard_at + self._settings.listening.stalled_input_s)
        return deadline

    def has_output(self) -> bool:
        """Tell whether ``pull`` would return something."""
        return self.speaking.has_output()

    def pull(self, now: float, max_bytes: int) -> tuple[list[Event], Sequence[Effect]]:
        """Return what may be sent to the client now, and the effects of sending it."""
        self.speaking.let_pass(now)
        events = self.speaking.pull(now, max_bytes)
        if events:
            self._waiting_since = None
        return events, self._settle(now)

    def end(self, reason: str) -> Sequence[Effect]:
        """End the session: cancel all engine work. What waits may still be pulled."""
        if self.ended is None:
            self.ended = reason
        return self._take_effects()

    # Commands

    def _append(self, command: AppendAudio, now: float) -> None:
        try:
            frame = self.listening.append(command.audio)
        except ClientError as exc:
            self._emit(error_event(exc, command.event_id))
            return
        self._heard_at = now
        if frame is not None and self._capabilities.hears_audio:
            self._dialogue.tell(Audio(frame), now)

    def _command(self, command: Command, now: float) -> None:
        match command:
            case UpdateSession(session=patch):
                self.config = merge(self.config, patch, self._supported)
                self.listening.configure(self.config)
                self._dialogue.own_config = response_config(self.config)
                self._emit(SessionUpdated(session=self._resource()))
                news = ConfigChanged(plugin_config(self.config, self._capabilities))
                self._dialogue.tell(news, now)
            case CommitAudio():
                self._commit(self.listening.commit_all(), now)
            case ClearAudio():
                self.listening.clear()
                self._emit(AudioCleared())
            case CreateItem():
                entry, events = self._conversation.create(command)
                self._emit_all(events)
                view = view_of(entry)
                if view is not None:
                    self._dialogue.tell(ItemAdded(view), now)
            case RetrieveItem():
                self._emit(self._conversation.retrieve(command))
            case TruncateItem():
                self._emit(self._conversation.truncate(command, now))
            case DeleteItem():
                self._emit(self._conversation.delete(command))
            case CreateResponse(response=params):
                config = response_config(self.config, params, self._supported)
                self._dialogue.request(config, now)
            case CancelResponse(response_id=response_id):
                self._cancel(response_id, now)
            case ClearOutputAudio():
                raise ProtocolError(
                    "output_audio_buffer.clear is for transports where the server plays the audio; "
                    "here, stop playing and send conversation.item.truncate",
                    code=ErrorCode.UNSUPPORTED,
                )

    def _cancel(self, response_id: str | None, now: float) -> None:
        response = self.speaking.active if response_id is None else self.speaking.get(response_id)
        if response is None:
            raise ProtocolError(
                "Cancellation failed: no active response found",
                code=ErrorCode.CANCEL_NOT_ACTIVE,
                param=None if response_id is None else "response_id",
            )
        self._dialogue.stop(response, "cancelled", CLIENT_CANCELLED, now)

    # What comes out of the engine

    def _engine_event(self, stream: Stream, event: EngineEvent, now: float) -> None:
        if isinstance(event, Ended):
            self.streams.ended(stream)
            self._stream_ended(stream, event, now)
            return
        payload = event.payload
        if stream.owner is Owner.PLUGIN:
            stream.speaks = stream.speaks or isinstance(payload, AudioChunk)
            self._dialogue.tell(StageOutput(stream.key, payload), now)
            return
        match payload:
            case VoiceActivity():
                self._turn_events(self._floor(self.listening.on_activity(payload), now), now)
            case EndOfTurn():
                self._turn_events(self._floor(self.listening.on_end_of_turn(payload), now), now)
            case Transcript():
                ready = self.listening.on_transcript(stream.key, payload)
                if ready is not None:
                    self._transcript(ready, now)
            case _:
                pass

    def _stream_ended(self, stream: Stream, event: Ended, now: float) -> None:
        failed = event.outcome is Outcome.FAILED
        match stream.owner:
            case Owner.PLUGIN if failed:
                self._dialogue.tell(StageFailed(stream.key, event.code), now)
            case Owner.PLUGIN:
                self._dialogue.tell(StageEnded(stream.key), now)
            case Owner.DETECTOR:
                self.listening.detector_failed()
            case Owner.TRANSCRIBER:
                if self.listening.recogniser_ended(stream.key):
                    self._no_transcript(stream.key, event.code, now)
            case _:
                pass

    # The person's turns

    def _floor(self, events: Iterable[FloorEvent], now: float) -> Iterable[TurnEvent]:
        active = self.speaking.active is not None or self.speaking.playback.lead_s(now) > 0
        detection = self.config.turn_detection
        return self._turns.on_floor(
            events,
            Answering(active, active and self.speaking.is_audible(now)),
            detection is not None and detection.interrupt_response,
        )

    def _turn_events(self, events: Iterable[TurnEvent], now: float) -> None:
        rate_hz = self._capabilities.input_rate_hz
        for event in events:
            match event:
                case TurnConfirmed(turn=turn, interrupts=interrupts):
                    start_ms = samples_to_ms(turn.start_sample, rate_hz)
                    self._emit(SpeechStarted(audio_start_ms=start_ms, item_id=turn.item_id))
                    if interrupts:
                        self._dialogue.interrupt(now)
                    self._tell_turn(TurnKind.STARTED, turn.item_id, turn.start_sample, now)
                case TurnPausing(turn=turn, sample=sample):
                    self._tell_turn(TurnKind.PAUSING, turn.item_id, sample, now)
                case TurnResumed(turn=turn, sample=sample):
                    self._tell_turn(TurnKind.RESUMED, turn.item_id, sample, now)
                case TurnCommitted(utterance=utterance):
                    end_ms = samples_to_ms(utterance.end_sample, rate_hz)
                    self._emit(SpeechStopped(audio_end_ms=end_ms, item_id=utterance.item_id))
                    self._commit(utterance, now)
                    detection = self.config.turn_detection
                    if detection is not None and detection.create_response:
                        self._answer_pending = not self._capabilities.decides_turns

    def _tell_turn(self, kind: TurnKind, item_id: str, sample: int, now: float) -> None:
        self._dialogue.tell(Turn(kind, item_id, sample), now)

    def _commit(self, utterance: Utterance, now: float) -> None:
        self._emit_all(self._conversation.commit_speech(utterance.item_id))
        self._tell_turn(TurnKind.COMMITTED, utterance.item_id, utterance.end_sample, now)
        if utterance.transcript is not None:
            self._transcript(utterance.transcript, now)
        elif not utterance.transcribing and self._capabilities.reads_transcripts:
            self._no_transcript(utterance.item_id, ErrorCode.STAGE_FAILED, now)

    def _transcript(self, ready: TranscriptReady, now: float) -> None:
        if self.config.transcription is not None:
            self._emit_all(self._transcripts.events(ready))
        if ready.kind is TranscriptKind.FINAL:
            self.history.set_user_transcript(ready.item_id, ready.text)
        self._dialogue.tell(UserTranscript(ready.item_id, ready.text, ready.kind), now)

    def _no_transcript(self, item_id: str, code: str, now: float) -> None:
        """A committed turn stays without text: an answer that waits for it cannot come."""
        if self.config.transcription is not None:
            self._emit(self._transcripts.failed(item_id))
        self.history.set_user_transcript(item_id, "")
        active = self.speaking.active
        waits = active is not None and active.state is ResponseState.CREATED
        if active is not None and waits and self._capabilities.reads_transcripts:
            self._dialogue.stop(active, "failed", code, now)

    # Afterwards, always

    def _settle(self, now: float) -> Sequence[Effect]:
        """Do what follows from any change, and return the effects of everything."""
        self._dialogue.settle()
        if self._answer_pending and self.speaking.active is None and self.ended is None:
            self._answer_pending = False
            try:
                self._dialogue.request(response_config(self.config), now)
            except OutputOverflow:
                self.ended = ErrorCode.CLIENT_TOO_SLOW
        if self._waiting_since is None and self.speaking.has_output():
            self._waiting_since = now
        return self._take_effects()

    def _take_effects(self) -> Sequence[Effect]:
        if self.ended is None:
            return self.streams.take_effects()
        self.streams.cancel_all()
        effects = self.streams.take_effects()
        if self._end_announced:
            return effects
        self._end_announced = True
        return (*effects, EndSession(self.ended))

    def _waits_for_client(self, now: float) -> float:
        return 0.0 if self._waiting_since is None else now - self._waiting_since

    def _emit(self, event: Event) -> None:
        try:
            self.speaking.buffer.put(event)
        except OutputOverflow:
            self.ended = ErrorCode.CLIENT_TOO_SLOW

    def _emit_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._emit(event)

    def _next_tick(self, tick_s: float) -> float:
        return self._opened_at + (self._ticks + 1) * tick_s

    def _resource(self) -> SessionResource:
        return to_wire(self.config, self.id, self.model, self._expires_wall)


def _output_limits(settings: SessionSettings) -> OutputLimits:
    return OutputLimits(
        audio_ms=settings.output_buffer_ms,
        held_bytes=settings.output_buffer_bytes,
        events=settings.output_events,
    )


def _pace(settings: SessionSettings) -> Pace:
    return Pace(
        lead_ms=settings.send_lead_ms or None,
        delta_ms=settings.delta_ms,
        merge_ms=settings.merge_ms,
    )
