"""The session as a client of the duplex dialect is shown it: the Realtime session and more.

This module must not know how a configuration came about.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from duologue.protocol.audio_formats import format_rate_hz
from duologue.protocol.duplex.config import DuplexConfig, OverlapPolicy, PlaybackCommitPolicy
from duologue.protocol.duplex.format_names import duplex_name
from duologue.protocol.session_config import (
    Modality,
    SessionConfig,
    SessionResource,
    TurnDetection,
)

ImplementationLevel: TypeAlias = Literal["model_native_duplex", "turn_based_duplex"]


class DuplexCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this session can do. A flag is here only if the server acts by it."""

    implementation_level: ImplementationLevel
    """``model_native_duplex`` where the model itself decides who speaks when."""

    supports_model_native_turn_policy: bool
    """The model decides about turns; nobody else does."""

    supports_client_commit: bool
    """A commit ends the person's turn. A model that decides about turns hears no commits."""

    supports_barge_in: bool
    """``barge_in``, and where detectors run, speech over an answer, stop it."""

    supports_playback_ack: bool
    """``playback.ack`` replaces the estimate of what was heard."""

    supports_audio_truncate: bool
    """``conversation.item.truncate`` cuts what was heard."""

    supports_input_sample_positions: bool
    """Appends may carry ``start_sample``."""

    supports_session_resume: bool
    """A lost connection may be replaced by another one."""

    supports_pictures: bool
    """The model sees: items may hold ``input_image`` parts, and ``video.frame`` is taken."""

    supports_voice_cloning: bool
    """``ref_audio`` is heard."""

    supports_instructions: bool
    """``instructions`` reach the model. Without it they are shown, and have no effect."""

    supports_persona_update: bool
    """Voice and instructions may change at any time; else until the model has spoken for the first
    time, and later changes are refused."""

    supports_sampling: bool
    """``top_k`` and ``seed`` may be set."""

    turn_detection_types: tuple[str, ...]
    """What may be set instead of null."""

    overlap_policies: tuple[OverlapPolicy, ...]
    """Values that ``overlap_policy`` may have here."""

    chunk_period_ms: int | None
    """How much audio the model takes at a time; null: any amount."""

    input_sample_rate_hz: int
    """Rate at which the server hears; other rates are converted."""

    output_sample_rate_hz: int
    """Rate at which the model speaks; other rates are converted."""


class DuplexExtraBody(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken from ``extra_body``."""

    auto_response: bool


class DuplexSessionResource(SessionResource, frozen=True, kw_only=True):
    """The session of a duplex connection: all of the Realtime session, and what the dialect adds.

    ``audio.input.turn_detection`` shows the detection in force, ``turn_detection`` what the client
    chose.
    """

    session_id: str
    """As ``id``."""

    capabilities: DuplexCapabilities
    modalities: tuple[Modality, ...]
    """As ``output_modalities``."""

    turn_detection: TurnDetection | None
    """Null: the server decides about turns, or the model."""

    input_audio_format: str
    output_audio_format: str
    sample_rate_hz: int
    """Of the person's audio on the wire."""

    overlap_policy: OverlapPolicy
    """What speech over an answer does."""

    overlap_barge_in_ms: int
    """Speech that is long enough to interrupt an answer that is being heard."""

    playback_commit_policy: PlaybackCommitPolicy
    """When an answer enters the conversation: when it is done, or as far as it is acknowledged."""

    idle_timeout_s: float | None
    """The session ends when the client says nothing for so long; null: never for this reason."""

    top_k: int | None
    """Among how many of the likeliest tokens the model draws; null: as it likes."""

    seed: int | None
    """What it draws depends on it; null: another one in each session."""

    extra_body: DuplexExtraBody


def duplex_to_wire(
    config: SessionConfig,
    realtime: SessionResource,
    capabilities: DuplexCapabilities,
    barge_in_ms: int,
) -> DuplexSessionResource:
    """Return the session resource that a duplex client is shown.

    Args:
        realtime: The same session as a Realtime client would be shown it.
        barge_in_ms: What interrupts in this server, unless the client has said.
    """
    duplex = config.duplex or DuplexConfig()
    asked_ms = duplex.overlap_barge_in_ms
    return DuplexSessionResource(
        **{name: getattr(realtime, name) for name in realtime.__struct_fields__},
        session_id=realtime.id,
        capabilities=capabilities,
        modalities=config.output_modalities,
        turn_detection=None if duplex.turns_left_to_server else config.turn_detection,
        input_audio_format=duplex_name(config.input_format),
        output_audio_format=duplex_name(config.output_format),
        sample_rate_hz=format_rate_hz(config.input_format),
        overlap_policy="barge_in_on_speech" if config.interrupts else "listen_only",
        overlap_barge_in_ms=barge_in_ms if asked_ms is None else asked_ms,
        playback_commit_policy=duplex.playback_commit_policy,
        idle_timeout_s=duplex.idle_timeout_s,
        top_k=duplex.top_k,
        seed=duplex.seed,
        extra_body=DuplexExtraBody(auto_response=duplex.auto_response),
    )
