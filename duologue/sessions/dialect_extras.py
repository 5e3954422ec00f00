"""What a dialect adds to a session: commands beyond the Realtime API, and what they need to know.

This module must not know how a dialect writes them.
"""

from __future__ import annotations

import math

from msgspec import UNSET

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import Capabilities
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import AudioFormat, format_rate_hz, named
from duologue.protocol.commands import Command
from duologue.protocol.config_checks import Supported
from duologue.protocol.duplex.commands import (
    AcknowledgePlayback,
    BargeIn,
    CommitTurn,
    Heartbeat,
    ShowFrame,
)
from duologue.protocol.duplex.config import DuplexConfig, OverlapPolicy
from duologue.protocol.duplex.events import (
    AcknowledgedPosition,
    HeartbeatAcknowledged,
    InputAccepted,
    PlaybackAcknowledged,
)
from duologue.protocol.duplex.session_merge import merge_duplex
from duologue.protocol.duplex.session_patch import DuplexPatch, as_duplex
from duologue.protocol.duplex.session_resource import DuplexCapabilities, duplex_to_wire
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import OutputBufferCleared
from duologue.protocol.response_resource import CLIENT_CANCELLED
from duologue.protocol.session_config import AnySession, SessionConfig, SessionResource
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.extensions import Extensions
from duologue.sessions.hearing.input_audio import InputAudio
from duologue.sessions.hearing.input_position import InputPosition, Placed
from duologue.sessions.hearing.person import Person
from duologue.sessions.history.history import History
from duologue.sessions.lifetime import Lifetime
from duologue.sessions.seeing.sight import Sight
from duologue.sessions.speaking.playback_acks import PlaybackAcks
from duologue.sessions.speaking.speaking import Speaking


class DialectExtras:
    """Of the Realtime API's own dialects: nothing is added. Every session has one."""

    idle_timeout_s: float | None = None
    """How long the client may be silent; ``None``: as long as it likes."""

    def heard_from(self, now: float) -> None:
        """The client has said something other than audio, or has come back."""

    def next_sample(self) -> int:
        """Return the first sample that the session does not have, on the client's own count."""
        return 0

    def merge(
        self, config: SessionConfig, patch: SessionPatch, supported: Supported
    ) -> SessionConfig:
        """Return the configuration with a change.

        Raises:
            ClientError: It is not allowed.
        """
        return merge(config, patch, supported)

    def shown(
        self, realtime: AnySession, config: SessionConfig, supported: Supported
    ) -> AnySession:
        """Return the session as the client is shown it."""
        return realtime

    def idle_at(self) -> float:
        """Return when the client will have been silent for too long."""
        return math.inf

    def acknowledge(self, now: float) -> None:
        """The client has said which events it has; the session knows what that means.

        Raises:
            ClientError: It cannot say so here.
        """
        raise _not_here()

    def append(self, command: AppendPlacedAudio, wire: AudioFormat, now: float) -> None:
        """Take audio that says what it is, and where it stands.

        Args:
            wire: What the session listens for.

        Raises:
            ClientError: It is refused, and nothing changed.
        """
        raise _not_here()

    def judge_placed(self, command: AppendPlacedAudio, wire: AudioFormat) -> AppendAudio:
        """Return long audio as it is to be taken in, slice by slice, where there is room for it.

        Raises:
            ClientError: It is in another format, too much is missing before it, or it does not fit.
        """
        raise _not_here()

    def command(self, command: Command, config: SessionConfig, now: float) -> None:
        """Carry out a command that the Realtime API does not have.

        Raises:
            ClientError: It is refused, and nothing changed.
        """
        raise _not_here()

    def clear_output(self, now: float) -> None:
        """Stop the sound of what is being said, and of what still plays.

        Raises:
            ClientError: There was never any.
        """
        raise _not_here()


class DuplexExtras(DialectExtras):
    """Of the duplex dialect."""

    def __init__(
        self,
        session_id: str,
        model: str,
        config: DuplexConfig,
        capabilities: Capabilities,
        barge_in_ms: int,
        extensions: Extensions,
        speaking: Speaking,
        history: History,
        dialogue: Dialogue,
        person: Person,
        audio: InputAudio,
        lifetime: Lifetime,
        sight: Sight | None = None,
    ) -> None:
        self._sight = sight
        self._spoke_at = 0.0
        self._person = person
        self._lifetime = lifetime
        self._session_id = session_id
        self._model = model
        self._capabilities = capabilities
        self._barge_in_ms = barge_in_ms
        self._extensions = extensions
        self._speaking = speaking
        self._dialogue = dialogue
        self._audio = audio
        self._acks = PlaybackAcks(speaking, history)
        self._position = InputPosition()
        self._configure(config)

    def heard_from(self, now: float) -> None:
        """It is not idle."""
        self._spoke_at = now

    def next_sample(self) -> int:
        """As the positions of its appends say."""
        return self._position.next_sample(self._audio.wire_samples)

    def merge(
        self, config: SessionConfig, patch: SessionPatch, supported: Supported
    ) -> SessionConfig:
        """As without the extensions; these settings too."""
        if not isinstance(patch, DuplexPatch):
            patch = as_duplex(patch)
        if patch.model is not UNSET and patch.model != self._model:
            raise refused(
                f"the model is '{self._model}' and cannot change; open another session",
                "session.model",
                ErrorCode.MODEL_UPDATE_UNSUPPORTED,
            )
        if patch.type is not UNSET and patch.type != config.kind:
            raise refused(
                f"a duplex session stays a {config.kind} session; "
                "to be transcribed only, connect with intent=transcription",
                "session.type",
                ErrorCode.UNSUPPORTED,
            )
        merged = merge_duplex(config, patch, supported)
        assert merged.duplex is not None
        self._configure(merged.duplex)
        return merged

    def shown(
        self, realtime: AnySession, config: SessionConfig, supported: Supported
    ) -> AnySession:
        """As without the extensions, and what they add."""
        assert isinstance(realtime, SessionResource)
        able = duplex_capabilities(
            self._capabilities,
            supported.turn_detection,
            resumable=self._lifetime.resumable,
        )
        return duplex_to_wire(config, realtime, able, self._barge_in_ms)

    def idle_at(self) -> float:
        """As the client has set it."""
        if self.idle_timeout_s is None:
            return math.inf
        return max(self._spoke_at, self._person.heard_at) + self.idle_timeout_s

    def acknowledge(self, now: float) -> None:
        """It is a sign of life, and no more."""
        self._spoke_at = now

    def append(self, command: AppendPlacedAudio, wire: AudioFormat, now: float) -> None:
        """Leave out what is known, and put silence for what is missing."""
        self._spoke_at = now
        placed = self._place(command, wire)
        self._person.append(command.audio if placed is None else placed.audio, now)
        if placed is not None:
            self._took(placed, wire)

    def judge_placed(self, command: AppendPlacedAudio, wire: AudioFormat) -> AppendAudio:
        """Leave out of long audio what is known, and put silence for what is missing."""
        placed = self._place(command, wire)
        audio = command.audio if placed is None else placed.audio
        self._audio.check_room(audio)
        if placed is not None:
            self._position.took(placed)
        return AppendAudio(audio=audio, event_id=command.event_id)

    def command(self, command: Command, config: SessionConfig, now: float) -> None:
        """Carry out a command of the dialect."""
        match command:
            case AcknowledgePlayback():
                self._acknowledge_playback(command, now)
            case CommitTurn(response_create=wanted):
                auto = config.duplex is None or config.duplex.auto_response
                if self._capabilities.decides_turns:
                    self._extensions.listens("model_decides_turns")
                elif not self._person.commit_if_spoken(now):
                    self._extensions.listens("silence_or_noise")
                elif auto if wanted is None else wanted:
                    self._dialogue.answer_when_free()
            case BargeIn():
                self._barge_in(config, now)
            case ShowFrame():
                self._show(command, now)
            case Heartbeat():
                self._speaking.emit(
                    HeartbeatAcknowledged(
                        session_id=self._session_id, next_sample=self.next_sample()
                    )
                )
            case _:
                raise refused(
                    "session.resume must be the first message on its connection",
                    "type",
                    ErrorCode.RESUME_UNSUPPORTED,
                )

    def clear_output(self, now: float) -> None:
        """Interrupt, and say whose sound it was."""
        response_id = self._acks.latest_response()
        if response_id is None:
            raise refused(
                "no answer has been said yet, so there is no sound to clear",
                None,
                ErrorCode.CANCEL_NOT_ACTIVE,
            )
        self._speaking.emit(OutputBufferCleared(response_id=response_id))
        self._dialogue.interrupt(now, CLIENT_CANCELLED)

    def _configure(self, config: DuplexConfig) -> None:
        self.idle_timeout_s = config.idle_timeout_s
        self._speaking.playback.only_acknowledged = config.playback_commit_policy == "ack_only"

    def _barge_in(self, config: SessionConfig, now: float) -> None:
        if self._speaking.active is None and self._speaking.playback.lead_s(now) == 0:
            return
        policy: OverlapPolicy = "barge_in_on_speech" if config.interrupts else "listen_only"
        speech_ms = self._person.speech_ms
        self._extensions.overlap("barge_in", "client_barge_in", policy, speech_ms)
        self._dialogue.interrupt(now)

    def _show(self, command: ShowFrame, now: float) -> None:
        if self._sight is None:
            raise refused(
                "this model does not see, so there is nobody to show a frame to",
                "type",
                ErrorCode.UNSUPPORTED,
            )
        told = self._sight.show(command, now)
        if told is not None:
            self._speaking.emit(told)

    def _place(self, command: AppendPlacedAudio, wire: AudioFormat) -> Placed | None:
        if command.declared is not None and command.declared != wire:
            raise refused(
                f"the append is {named(command.declared)}, the session listens for {named(wire)}; "
                "change it with session.update",
                "format",
                ErrorCode.UNSUPPORTED_AUDIO_FORMAT,
            )
        start = command.start_sample
        if start is None:
            return None
        return self._position.place(command.audio, start, self._audio.wire_samples, wire)

    def _took(self, placed: Placed, wire: AudioFormat) -> None:
        position = self._position
        position.took(placed)
        taken = self._audio.wire_samples
        if position.report_due(taken, format_rate_hz(wire)):
            self._speaking.emit(
                InputAccepted(
                    next_sample=position.next_sample(taken), missing_samples=position.missing
                )
            )

    def _acknowledge_playback(self, command: AcknowledgePlayback, now: float) -> None:
        booked = self._acks.book(command, now)
        cursor = booked.cursor
        self._speaking.emit(
            PlaybackAcknowledged(
                event=AcknowledgedPosition(
                    session_id=self._session_id,
                    epoch=self._extensions.epoch,
                    response_id=booked.response_id,
                    item_id=booked.entry.item.id,
                    played_ms=cursor.played_ms,
                    committed_ms=cursor.committed_ms,
                    truncate=command.truncate,
                    playback=cursor,
                    history_committed=booked.whole,
                )
            )
        )
        for entry in booked.changed:
            self._dialogue.heard_changed(entry, now)


def extras_of(
    session_id: str,
    model: str,
    config: SessionConfig,
    capabilities: Capabilities,
    barge_in_ms: int,
    extensions: Extensions | None,
    speaking: Speaking,
    history: History,
    dialogue: Dialogue,
    person: Person,
    audio: InputAudio,
    lifetime: Lifetime,
    sight: Sight | None = None,
) -> DialectExtras:
    """Return what a session adds for its client, which may be nothing.

    Args:
        barge_in_ms: Speech that interrupts, unless the client has said.
        sight: Where frames go; ``None``: the model does not see.
    """
    if extensions is None or config.duplex is None:
        return DialectExtras()
    return DuplexExtras(
        session_id,
        model,
        config.duplex,
        capabilities,
        barge_in_ms,
        extensions,
        speaking,
        history,
        dialogue,
        person,
        audio,
        lifetime,
        sight,
    )


def duplex_capabilities(
    capabilities: Capabilities, detectors: frozenset[str], *, resumable: bool
) -> DuplexCapabilities:
    """Return what a duplex client may count on, from what the model and the server can do."""
    own = capabilities.decides_turns
    types = () if own else tuple(sorted(detectors))
    return DuplexCapabilities(
        implementation_level="model_native_duplex" if own else "turn_based_duplex",
        supports_model_native_turn_policy=own,
        supports_client_commit=not own,
        supports_barge_in=True,
        supports_playback_ack=True,
        supports_audio_truncate=True,
        supports_input_sample_positions=True,
        supports_session_resume=resumable,
        supports_pictures=capabilities.sees,
        supports_voice_cloning=False,
        supports_instructions=capabilities.persona.reads_instructions,
        supports_persona_update=not capabilities.persona.stays,
        supports_sampling=capabilities.persona.sampling,
        turn_detection_types=types,
        overlap_policies=("listen_only", "barge_in_on_speech") if types else ("listen_only",),
        chunk_period_ms=capabilities.frame_ms or capabilities.tick_ms,
        input_sample_rate_hz=capabilities.input_rate_hz,
        output_sample_rate_hz=capabilities.output_rate_hz,
    )


def _not_here() -> ProtocolError:
    return refused("only a duplex session can do that", "type", ErrorCode.UNSUPPORTED)
