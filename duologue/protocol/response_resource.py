"""The response resource that ``response.created`` and ``response.done`` show.

This module must not know the life of a response: that is a table in sessions.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from duologue.protocol.audio_formats import AudioFormat
from duologue.protocol.items import Item
from duologue.protocol.session_config import MaxTokens, Modality, Voice

ResponseStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]

TURN_DETECTED = "turn_detected"
"""Why a response was cancelled: the person has the floor."""

CLIENT_CANCELLED = "client_cancelled"
"""Why a response was cancelled: the client wanted it so."""


class ResponseFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response failed, in public words."""

    type: str
    code: str
    message: str


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a response ended as it did."""

    type: Literal["completed", "cancelled", "failed", "incomplete"]
    reason: str | None = None
    """``turn_detected``, ``client_cancelled``, ``max_output_tokens``, ``output_overflow``, ..."""

    error: ResponseFailure | None = None


class CachedTokenDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Input tokens that were already in the model's memory."""

    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0


class InputTokenDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Input tokens by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0
    cached_tokens_details: CachedTokenDetails = CachedTokenDetails()


class OutputTokenDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Output tokens by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a response cost."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_token_details: InputTokenDetails = InputTokenDetails()
    output_token_details: OutputTokenDetails = OutputTokenDetails()


class ResponseAudioOutputResource(msgspec.Struct, frozen=True, kw_only=True):
    """Format and voice of the answer."""

    format: AudioFormat
    voice: Voice


class ResponseAudioResource(msgspec.Struct, frozen=True, kw_only=True):
    """Audio settings of the answer."""

    output: ResponseAudioOutputResource


class ResponseResource(msgspec.Struct, frozen=True, kw_only=True):
    """A response as it stands."""

    object: Literal["realtime.response"] = "realtime.response"
    id: str
    status: ResponseStatus
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    conversation_id: str | None = None
    """Null for an out-of-band response."""

    output_modalities: tuple[Modality, ...]
    audio: ResponseAudioResource
    max_output_tokens: MaxTokens = "inf"
    metadata: dict[str, str] | None = None
    """As the client gave it in ``response.create``."""

    usage: Usage | None = None
    """Null until the response is done."""
