"""Changes of a session in plain arguments, for programs; the wire has its own, deeper shape.

This module must not know when a change is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict, Unpack

from msgspec import UNSET, UnsetType

from duologue.clients.tools.function import ToolLike, definitions
from duologue.protocol.audio_formats import AudioFormat, FormatPatch, PcmFormat
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
        transcription: True and False switch the transcript of the caller's speech on and off.
        tools: Python functions, which are run when the model calls them; or bare definitions, whose
            calls the program answers by itself.
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
    return SessionPatch(
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


def _format(audio_format: AudioFormat | UnsetType) -> FormatPatch | UnsetType:
    if audio_format is UNSET:
        return UNSET
    if isinstance(audio_format, PcmFormat):
        return FormatPatch(type="audio/pcm", rate=audio_format.rate)
    kind: Literal["audio/pcmu", "audio/pcma"] = (
        "audio/pcmu" if audio_format.__struct_config__.tag == "audio/pcmu" else "audio/pcma"
    )
    return FormatPatch(type=kind)


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
