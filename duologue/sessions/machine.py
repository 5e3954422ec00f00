"""The session machine: inputs and ``now`` in, effects out. No await, no clock, no socket.

Its parts are the person (turns and transcripts), the dialogue (the plugin and its responses), the
conversation and the engine requests; ``assembly`` joins them. Each decision is made in a part. This
module routes, and must not know wire formats, samples or models.
"""

from __future__ import annotations

from collections.abc import Sequence

from duologue.core.errors import ClientError
from duologue.core.ids import IdMaker
from duologue.duplex_plugins.contract import (
    AudienceChanged,
    Capabilities,
    ConfigChanged,
    DuplexPlugin,
    RequestOutput,
    Tick,
)
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.ports import Ended, EngineEvent, Output
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.errors import ErrorCode, error_body, error_event
from duologue.protocol.events import ErrorEvent, Event, SessionCreated, SessionUpdated
from duologue.protocol.session_config import AnySession, SessionConfig
from duologue.sessions.assembly import assembled
from duologue.sessions.effects import Effect, EndSession, LetGo
from duologue.sessions.history.inheritance import Carried
from duologue.sessions.inputs import Rejected, SessionInput
from duologue.sessions.request_ends import tell_of_end
from duologue.sessions.requests import Asker, RunningRequest
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.silencer import SoundHolder


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
        edge_plays: The edge paces the sound and reports what was played, as ``played`` says.
    """

    __slots__ = (
        "_audience",
        "_configuration",
        "_dialogue",
        "_end_announced",
        "_person",
        "_router",
        "_settings",
        "_watchdog",
        "_watches_silence",
        "ended",
        "extensions",
        "extras",
        "history",
        "id",
        "lifetime",
        "listening",
        "model",
        "requests",
        "sight",
        "speaking",
        "timing_changed",
    )

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
        edge_plays: bool = False,
    ) -> None:
        self.id = session_id
        self.model = model
        self.ended: str | None = None
        self._settings = settings
        self._end_announced = False
        self.timing_changed = True
        capabilities = plugin.capabilities()
        if config.kind == "transcription":
            # The model is not asked, so what it can do does not matter.
            capabilities = Capabilities(speaks=False)
        self._watches_silence = not capabilities.decides_turns
        parts = assembled(
            session_id,
            model,
            plugin,
            capabilities,
            config,
            settings,
            detectors=detectors,
            new_id=new_id,
            now=now,
            wall_time=wall_time,
            edge_plays=edge_plays,
        )
        self.requests = parts.requests
        self.history = parts.history
        self.sight = parts.sight
        self.speaking = parts.speaking
        self.listening = parts.listening
        self.extensions = parts.extensions
        self.lifetime = parts.lifetime
        self.extras = parts.extras
        self._configuration = parts.configuration
        self._dialogue = parts.dialogue
        self._person = parts.person
        self._watchdog = parts.watchdog
        self._audience = parts.audience
        self._router = parts.router

    @property
    def config(self) -> SessionConfig:
        """What is in force."""
        return self._configuration.current

    @property
    def owes_answer(self) -> bool:
        """The person has finished, and is still to be answered."""
        return self._dialogue.owes_answer

    @property
    def stream(self) -> FrameCounts | None:
        """What became of the frames of a model that is stepped at a beat; ``None``: it is not."""
        return self._dialogue.stream

    # Life: open, apply, on_timer, pull, close

    def open(self, now: float) -> Sequence[Effect]:
        """Greet the client; nothing may be applied before."""
        self.speaking.emit(SessionCreated(session=self.resource()))
        if self.extensions is not None:
            # Such a session is opened by an update.
            self.speaking.emit(SessionUpdated(session=self.resource()))
        by_client = self.extensions is not None
        self._dialogue.tell(ConfigChanged(self._configuration.of_plugin(), by_client), now)
        return self._conclude(now)

    def apply(self, item: SessionInput, now: float) -> Sequence[Effect]:
        """Take one input. A client's mistake becomes one ``error`` event; nothing else changes.

        Raises:
            PluginError: The plugin broke its contract; the session must be closed.
        """
        if self.ended is not None:
            return ()
        # Audio comes many times a second, and moves no deadline closer.
        if type(item) is AppendAudio or type(item) is AppendPlacedAudio:
            speaking = self.speaking
            try:
                if type(item) is AppendPlacedAudio:
                    self.extras.append(item, self._configuration.current.input_format, now)
                else:
                    self._person.append(item.audio, now)
            except ClientError as exc:
                speaking.emit(error_event(exc, item.event_id))
            if speaking.has_news or self._audience.watched:
                self.timing_changed = True
                return self._conclude(now)
            # The same as ``_conclude``, for what seldom leads to more than sound.
            if speaking.buffer.held_bytes:
                self._note_waiting(now)
            return self.requests.take_effects() if self.requests.effects else ()
        self.timing_changed = True
        if isinstance(item, Output | Ended):
            if (request := self.requests.accept(item)) is not None:
                self._engine_event(request, item, now)
        elif isinstance(item, Rejected):
            self.speaking.emit(ErrorEvent(error=item.error))
        else:
            try:
                ending = self._router.route(item, now)
                if ending is not None:
                    self._stop_all(ending, now)
            except ClientError as exc:
                self.speaking.emit(error_event(exc, item.event_id))
        return self._conclude(now)

    def judge(self, append: AppendAudio) -> AppendAudio | Rejected:
        """Return a long append as it is to be taken in, slice by slice, or why it is refused."""
        try:
            if isinstance(append, AppendPlacedAudio):
                return self.extras.judge_placed(append, self._configuration.current.input_format)
            self.listening.audio.check_room(append.audio)
            return append
        except ClientError as exc:
            return Rejected(error_body(exc, append.event_id))

    def on_timer(self, now: float) -> Sequence[Effect]:
        """Let time pass; early calls do nothing."""
        if self.ended is not None:
            return ()
        self.timing_changed = True
        settings, lifetime = self._settings, self.lifetime
        if now >= lifetime.expires_at and self._is_too_old(now):
            return self.close(ErrorCode.SESSION_EXPIRED, now)
        self.speaking.pacing.let_pass(now)
        if lifetime.stalled(now):
            if lifetime.resumable:
                return (LetGo(ErrorCode.CLIENT_TOO_SLOW),)
            return self.close(ErrorCode.CLIENT_TOO_SLOW, now)
        if not self._person.away and now >= self.extras.idle_at():
            return self.close(ErrorCode.IDLE_TIMEOUT, now)
        if self.extensions is not None and lifetime.warning_due(now):
            self.extensions.expires_in(lifetime.expires_at - now)
        while lifetime.beat(now):
            self._dialogue.tell(Tick(lifetime.ticks), now)
        self._person.let_pass(settings.response_timeout_s, now)
        for response, code in self._watchdog.stuck(now):
            # The end of another may have ended it, too.
            if self.speaking.get(response.id) is response:
                self._dialogue.stop(response, "failed", code, now)
        return self._conclude(now)

    def next_deadline(self) -> float:
        """When ``on_timer`` wants to be called next.

        Need not be asked again before ``timing_changed``, unless output waits: a frame that comes
        in moves deadlines only away.
        """
        self.timing_changed = False
        deadline = self.lifetime.next_deadline()
        if (paced := self.speaking.pacing.paced_until) is not None and paced < deadline:
            deadline = paced
        for due in (self._dialogue.due_at(), self._person.due_at(), self._watchdog.due_at()):
            if due is not None and due < deadline:
                deadline = due
        if (since := self._person.untranscribed_since()) is not None:
            deadline = min(deadline, since + self._settings.response_timeout_s)
        if self.extras.idle_timeout_s is not None and not self._person.away:
            deadline = min(deadline, self.extras.idle_at())
        return deadline

    def pull(self, now: float, max_bytes: int) -> tuple[list[Event], Sequence[Effect]]:
        """Return what may be sent to the client now, and the effects of sending it."""
        speaking = self.speaking
        events = speaking.pull(now, max_bytes)
        if events:
            more = speaking.buffer.held_bytes and speaking.has_output()
            self.lifetime.waiting_since = now if more else None
        # What was sent may have been the last that a response had to say for now.
        if self._watches_silence or speaking.pacing.paced_until is not None:
            self.timing_changed = True
        if speaking.has_news or self._audience.watched or self.ended is not None:
            return events, self._conclude(now)
        return events, ()

    def detach(self, now: float) -> None:
        """The connection is lost, and the session waits for another: nothing is held against it."""
        self.lifetime.detach(now)
        self._person.go_away()
        self.timing_changed = True

    def reattach(self, now: float, pieces: Sequence[tuple[str, float]] = ()) -> None:
        """Another connection has come; ``pieces`` of sound, in seconds, are sent again."""
        if pieces:
            self.speaking.playback.on_sent_again(pieces, now)
        self.lifetime.attach(now)
        self._person.be_back(now)
        self.extras.heard_from(now)
        self.timing_changed = True

    def played(self, item_id: str, played_ms: int) -> None:
        """Note how much of an item's speech the edge has played; it replaces the estimate."""
        self.speaking.playback.on_acknowledged(item_id, played_ms)

    def acknowledge(self, now: float) -> None:
        """The client has said which events it has; of this it leads to nothing here.

        Raises:
            ClientError: It cannot say so here.
        """
        self.extras.acknowledge(now)

    # Who holds sound: told what to withdraw, and never asked. Nothing that comes out of the machine
    # depends on it, so neither is recorded, nor done when a recording is run again.

    def heard_by(self, connection: SoundHolder | None) -> None:
        """Let a connection be told when sound that it has under way is not to be heard any more.

        Args:
            connection: Replaces the one before; ``None``: it holds none back.
        """
        self.speaking.silencer.connection = connection

    def kept_by(self, journal: SoundHolder) -> None:
        """The same for what may be sent again."""
        self.speaking.silencer.journal = journal

    def outlive(self) -> None:
        """Let the session outlive its connection; before it is opened."""
        self.lifetime.resumable = True

    def inherit(self, items: tuple[Carried, ...], *, unanswered: bool) -> None:
        """Begin with the conversation of another session; right after ``open``."""
        self.history.inherit(items)
        if unanswered:
            self._dialogue.answer_when_free()

    def close(self, reason: str, now: float) -> Sequence[Effect]:
        """End the session and its responses. The events that wait may still be pulled."""
        self._stop_all(reason, now)
        return self._take_effects()

    def crash(self, reason: str) -> Sequence[Effect]:
        """End the session as it is: something in it is broken."""
        if self.ended is None:
            self.ended = reason
        return self._take_effects()

    def _stop_all(self, reason: str, now: float) -> None:
        if self.ended is None:
            self.ended = reason
            # The plugin is not told: nothing that it might say of this would go anywhere.
            for response in self.speaking.all():
                self.speaking.cut_off(response, "cancelled", reason, now)

    # What comes out of the engine

    def _engine_event(self, request: RunningRequest, event: EngineEvent, now: float) -> None:
        if isinstance(event, Output):
            if request.asker is Asker.PLUGIN:
                self._dialogue.tell(RequestOutput(request.key, event.payload), now)
            else:
                self._person.on_output(request.key, event.payload, now)
            return
        tell_of_end(request, event, self.requests, self._dialogue, self._person, now)

    # Afterwards, always

    def _conclude(self, now: float) -> Sequence[Effect]:
        """Do what follows from any change, and return the effects of everything."""
        if self.ended is None:
            self._dialogue.follow_up(now)
            if self._audience.watched:
                self._watch_audience(now)
        if self.speaking.overflowed and self.ended is None:
            return self.close(ErrorCode.CLIENT_TOO_SLOW, now)
        self._note_waiting(now)
        return self._take_effects() if self.requests.effects or self.ended is not None else ()

    def _note_waiting(self, now: float) -> None:
        if self.lifetime.waiting_since is None and self.speaking.has_output():
            self.lifetime.waiting_since = now

    def _watch_audience(self, now: float) -> None:
        waiting_ms = self.speaking.buffer.speech_ms
        if self._audience.look(away=self._person.away, waiting_ms=waiting_ms):
            self._dialogue.tell(AudienceChanged(self._audience.present), now)

    def _take_effects(self) -> Sequence[Effect]:
        if self.ended is None:
            return self.requests.take_effects()
        self.requests.cancel_all()
        effects = self.requests.take_effects()
        if self._end_announced:
            return effects
        self._end_announced = True
        if self.extensions is not None:
            self.extensions.farewell(self.ended)
        return (*effects, EndSession(self.ended))

    def _is_too_old(self, now: float) -> bool:
        self._dialogue.begin_no_more()
        busy = self.speaking.playback.lead_s(now) > 0 or self.speaking.active is not None
        return self.lifetime.over(now, answering=busy or self._person.is_being_heard)

    def resource(self) -> AnySession:
        """Return the session as the client is shown it."""
        return self._configuration.shown(self.extras)
