"""Changes of a session in plain arguments, for programs; the wire has its own, deeper shape.

This module must not know when a change is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from duologue.clients.tools.function import ToolLike, definitions
from duologue.core.errors import ConfigError
from duologue.protocol.audio_formats import AudioFormat, FormatPatch
from duologue.protocol.duplex.config import OverlapPolicy, PlaybackCommitPolicy
from duologue.protocol.duplex.format_names import FORMAT_TYPES
from duologue.protocol.duplex.session_patch import DuplexPatch, as_duplex
from duologue.protocol.session_config import MaxTokens, Modality, ToolChoice, Voice
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)

TurnDetectionChoice: TypeAlias = Literal["server_vad", "semantic_vad"] | TurnDetectionPatch | None
"""A kind with its defaults, a patch with details, or ``None``: turns are committed by hand."""


class SessionChanges(TypedDict, total=False):
    """What may be changed; what is left out stays as it is.

    Args:
        turn_detection: See ``TurnDetectionChoice``.
        transcription: True and False switch the transcript of the caller's speech on and off. Off
            unless a program asks: it costs the server a recogniser's work for each turn, and
            where there is none, every turn would be told to have failed.
        tools: Python functions, which are run when the model calls them; or bare definitions, whose
            calls the program answers by itself.

    In the duplex dialect only:
        overlap_policy: Whether speech over an answer stops it.
        overlap_barge_in_ms: How long that speech must last, 0 to 10,000.
        playback_commit_policy: With ``ack_only`` the conversation holds what was heard.
        auto_response: False: only ``create_response`` and ``ask`` are answered.
        idle_timeout_s: A client that says nothing for so long is sent away, 1 to 3,600.
    """

    instructions: str
    voice: Voice
    speed: float
    output_modalities: Sequence[Modality]
    turn_detection: TurnDetectionChoice
    transcription: bool | TranscriptionPatch
    input_format: AudioFormat
    output_format: AudioFormat
    tools: Sequence[ToolLike]
    tool_choice: ToolChoice
    max_output_tokens: MaxTokens
    overlap_policy: OverlapPolicy
    overlap_barge_in_ms: int
    playback_commit_policy: PlaybackCommitPolicy
    auto_response: bool
    idle_timeout_s: float


def session_patch(**changes: Unpack[SessionChanges]) -> SessionPatch:
    """Return the patch for the changes that are given."""
    given = AudioInputPatch(
        format=_format(changes.get("input_format", UNSET)),
        transcription=_transcription(changes.get("transcription", UNSET)),
        turn_detection=_turn_detection(changes.get("turn_detection", UNSET)),
    )
    taken = AudioOutputPatch(
        format=_format(changes.get("output_format", UNSET)),
        voice=changes.get("voice", UNSET),
        speed=changes.get("speed", UNSET),
    )
    audio = AudioPatch(
        input=UNSET if given == AudioInputPatch() else given,
        output=UNSET if taken == AudioOutputPatch() else taken,
    )
    patch = SessionPatch(
        type="realtime",
        instructions=changes.get("instructions", UNSET),
        output_modalities=tuple(changes["output_modalities"])
        if "output_modalities" in changes
        else UNSET,
        audio=UNSET if audio == AudioPatch() else audio,
        tools=definitions(changes["tools"]) if "tools" in changes else UNSET,
        tool_choice=changes.get("tool_choice", UNSET),
        max_output_tokens=changes.get("max_output_tokens", UNSET),
    )
    if not _DUPLEX_ONLY & changes.keys():
        return patch
    return msgspec.structs.replace(
        as_duplex(patch),
        overlap_policy=changes.get("overlap_policy", UNSET),
        overlap_barge_in_ms=changes.get("overlap_barge_in_ms", UNSET),
        playback_commit_policy=changes.get("playback_commit_policy", UNSET),
        auto_response=changes.get("auto_response", UNSET),
        idle_timeout_s=changes.get("idle_timeout_s", UNSET),
    )


_DUPLEX_ONLY = {
    "overlap_policy",
    "overlap_barge_in_ms",
    "playback_commit_policy",
    "auto_response",
    "idle_timeout_s",
}


def check_plain(patch: SessionPatch | None) -> None:
    """Refuse settings that a plain Realtime session does not have, and would pass by in silence.

    Raises:
        ConfigError: There is one.
    """
    if isinstance(patch, DuplexPatch):
        raise ConfigError(
            "overlap, playback and response policies are settings of the duplex dialect: connect "
            "with dialect='duplex'"
        )


def _format(audio_format: AudioFormat | UnsetType) -> FormatPatch | UnsetType:
    if audio_format is UNSET:
        return UNSET
    rate = getattr(audio_format, "rate", UNSET)
    return FormatPatch(type=FORMAT_TYPES[str(audio_format.__struct_config__.tag)], rate=rate)


def _transcription(
    choice: bool | TranscriptionPatch | UnsetType,
) -> TranscriptionPatch | UnsetType | None:
    if choice is True:
        return TranscriptionPatch()
    if choice is False:
        return None
    return choice


def _turn_detection(
    choice: TurnDetectionChoice | UnsetType,
) -> TurnDetectionPatch | UnsetType | None:
    return TurnDetectionPatch(type=choice) if isinstance(choice, str) else choice
