"""Partial changes of a session's configuration, and the pure merge that applies them.

A field that is absent stays as it is; an explicit null clears it, which means off or the default.
This module must not know what the configuration is for.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.session_config import (
    Eagerness,
    FunctionTool,
    MaxTokens,
    Modality,
    NoiseReduction,
    SessionKind,
    ToolChoice,
    Tracing,
    Truncation,
    Voice,
)

Unset: TypeAlias = UnsetType


class TurnDetectionPatch(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A change of turn detection. Unknown keys are refused: a typo would change the manners."""

    type: Literal["server_vad", "semantic_vad"] | Unset = UNSET
    threshold: float | Unset | None = UNSET
    """Of ``server_vad``: 0 to 1."""

    prefix_padding_ms: int | Unset | None = UNSET
    """Of ``server_vad``: 0 to 10,000."""

    silence_duration_ms: int | Unset | None = UNSET
    """Of ``server_vad``: 10 to 30,000."""

    idle_timeout_ms: int | Unset | None = UNSET
    """Of ``server_vad``: 1,000 to 3,600,000."""

    eagerness: Eagerness | Unset | None = UNSET
    """Of ``semantic_vad``."""

    create_response: bool | Unset | None = UNSET
    interrupt_response: bool | Unset | None = UNSET


class TranscriptionPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of transcription."""

    model: str | Unset | None = UNSET
    language: str | Unset | None = UNSET
    prompt: str | Unset | None = UNSET


class AudioInputPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of the input half of the audio settings."""

    format: FormatPatch | Unset | None = UNSET
    transcription: TranscriptionPatch | Unset | None = UNSET
    noise_reduction: NoiseReduction | Unset | None = UNSET
    turn_detection: TurnDetectionPatch | Unset | None = UNSET


class AudioOutputPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of the output half of the audio settings."""

    format: FormatPatch | Unset | None = UNSET
    voice: Voice | Unset | None = UNSET
    speed: float | Unset | None = UNSET
    """0.25 to 1.5."""


class AudioPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of the audio settings."""

    input: AudioInputPatch | Unset | None = UNSET
    output: AudioOutputPatch | Unset | None = UNSET


class SessionPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of ``session.update``. Keys not listed here are accepted and have no effect."""

    type: SessionKind | Unset = UNSET
    instructions: str | Unset | None = UNSET
    output_modalities: tuple[Modality, ...] | Unset | None = UNSET
    audio: AudioPatch | Unset | None = UNSET
    tools: tuple[FunctionTool, ...] | Unset | None = UNSET
    tool_choice: ToolChoice | Unset | None = UNSET
    parallel_tool_calls: bool | Unset | None = UNSET
    max_output_tokens: MaxTokens | Unset | None = UNSET
    tracing: Tracing | Unset | None = UNSET
    truncation: Truncation | Unset | None = UNSET
    temperature: float | Unset | None = UNSET
    """0 to 2; null: as the model likes."""
