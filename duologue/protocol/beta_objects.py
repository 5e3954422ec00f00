"""Sessions, items and responses as the beta API shows them, made from the GA ones.

This module must not know in which events they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import (
    AudioFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
)
from duologue.protocol.flat_fields import FlatFormat
from duologue.protocol.items import (
    ContentPart,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemStatus,
    MessageItem,
    OutputAudio,
    OutputText,
    Role,
)
from duologue.protocol.response_events import AudioPart, TextPart
from duologue.protocol.response_resource import (
    ResponseResource,
    ResponseStatus,
    StatusDetails,
    Usage,
)
from duologue.protocol.session_config import (
    AnySession,
    CustomVoice,
    FunctionTool,
    MaxTokens,
    Modality,
    NoiseReduction,
    SemanticVad,
    ServerVad,
    ToolChoice,
    Tracing,
    Transcription,
    TranscriptionResource,
    TurnDetection,
    Voice,
)

_FORMATS: Mapping[type[AudioFormat], FlatFormat] = {
    PcmFormat: "pcm16",
    PcmuFormat: "g711_ulaw",
    PcmaFormat: "g711_alaw",
}


class BetaServerVad(msgspec.Struct, frozen=True, kw_only=True, tag="server_vad"):
    """Turn detection by silence; what an old client may not know is left out where it can be."""

    threshold: float
    prefix_padding_ms: int
    silence_duration_ms: int
    idle_timeout_ms: int | UnsetType
    create_response: bool | UnsetType
    interrupt_response: bool | UnsetType


BetaTurnDetection: TypeAlias = BetaServerVad | SemanticVad


class BetaSession(msgspec.Struct, frozen=True, kw_only=True):
    """The whole effective session, on one level."""

    object: Literal["realtime.session"] = "realtime.session"
    id: str
    model: str
    expires_at: int
    modalities: tuple[Modality, ...]
    instructions: str
    voice: str
    speed: float
    input_audio_format: str
    output_audio_format: str
    input_audio_transcription: Transcription | None
    input_audio_noise_reduction: NoiseReduction | None
    turn_detection: BetaTurnDetection | None
    tools: tuple[FunctionTool, ...]
    tool_choice: ToolChoice
    temperature: float | UnsetType = UNSET
    max_response_output_tokens: MaxTokens
    tracing: Tracing | None


class BetaTranscriptionSession(msgspec.Struct, frozen=True, kw_only=True):
    """The same of a session that only transcribes."""

    object: Literal["realtime.transcription_session"] = "realtime.transcription_session"
    id: str
    expires_at: int
    input_audio_format: str
    input_audio_transcription: Transcription | None
    input_audio_noise_reduction: NoiseReduction | None
    turn_detection: BetaTurnDetection | None


BetaPart: TypeAlias = InputText | InputAudio | InputImage | TextPart | AudioPart


class BetaMessage(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """What one side said; an assistant's parts are called ``text`` and ``audio``."""

    id: str
    object: Literal["realtime.item"]
    status: ItemStatus
    role: Role
    content: tuple[BetaPart, ...]


BetaItem: TypeAlias = BetaMessage | FunctionCallItem | FunctionCallOutputItem


class BetaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response as it stands, on one level."""

    object: Literal["realtime.response"]
    id: str
    status: ResponseStatus
    status_details: StatusDetails | None
    output: tuple[BetaItem, ...]
    conversation_id: str | None
    modalities: tuple[Modality, ...]
    voice: str
    output_audio_format: str
    max_output_tokens: MaxTokens
    metadata: dict[str, str] | None
    usage: Usage | None


def beta_session(session: AnySession) -> BetaSession | BetaTranscriptionSession:
    """Return a session as the beta API shows it."""
    inp = session.audio.input
    if isinstance(session, TranscriptionResource):
        return BetaTranscriptionSession(
            id=session.id,
            expires_at=session.expires_at,
            input_audio_format=_format(inp.format),
            input_audio_transcription=inp.transcription,
            input_audio_noise_reduction=inp.noise_reduction,
            turn_detection=_turn_detection(inp.turn_detection, answers=False),
        )
    out = session.audio.output
    return BetaSession(
        id=session.id,
        model=session.model,
        expires_at=session.expires_at,
        modalities=_modalities(session.output_modalities),
        instructions=session.instructions,
        voice=_voice(out.voice),
        speed=out.speed,
        input_audio_format=_format(inp.format),
        output_audio_format=_format(out.format),
        input_audio_transcription=inp.transcription,
        input_audio_noise_reduction=inp.noise_reduction,
        turn_detection=_turn_detection(inp.turn_detection, answers=True),
        tools=session.tools,
        tool_choice=session.tool_choice,
        temperature=session.temperature,
        max_response_output_tokens=session.max_output_tokens,
        tracing=session.tracing,
    )


def beta_item(item: Item) -> BetaItem:
    """Return an item as the beta API shows it."""
    if not isinstance(item, MessageItem):
        return item
    return BetaMessage(
        id=item.id,
        object=item.object,
        status=item.status,
        role=item.role,
        content=tuple(_part(part) for part in item.content),
    )


def beta_response(response: ResponseResource) -> BetaResponse:
    """Return a response as the beta API shows it."""
    return BetaResponse(
        object=response.object,
        id=response.id,
        status=response.status,
        status_details=response.status_details,
        output=tuple(beta_item(item) for item in response.output),
        conversation_id=response.conversation_id,
        modalities=_modalities(response.output_modalities),
        voice=_voice(response.audio.output.voice),
        output_audio_format=_format(response.audio.output.format),
        max_output_tokens=response.max_output_tokens,
        metadata=response.metadata,
        usage=response.usage,
    )


def _part(part: ContentPart) -> BetaPart:
    match part:
        case OutputText(text=text):
            return TextPart(text=text)
        case OutputAudio(transcript=transcript):
            return AudioPart(transcript=transcript or "")
        case _:
            return part


def _format(audio_format: AudioFormat) -> str:
    """One that the beta API did not know was set before the connection, by a client secret."""
    known = _FORMATS.get(type(audio_format))
    return known or str(audio_format.__struct_config__.tag).removeprefix("audio/")


def _turn_detection(detection: TurnDetection | None, *, answers: bool) -> BetaTurnDetection | None:
    if not isinstance(detection, ServerVad):
        return detection
    idle = detection.idle_timeout_ms
    return BetaServerVad(
        threshold=detection.threshold,
        prefix_padding_ms=detection.prefix_padding_ms,
        silence_duration_ms=detection.silence_duration_ms,
        idle_timeout_ms=UNSET if idle is None else idle,
        create_response=detection.create_response if answers else UNSET,
        interrupt_response=detection.interrupt_response if answers else UNSET,
    )


def _modalities(modalities: tuple[Modality, ...]) -> tuple[Modality, ...]:
    return ("text", "audio") if "audio" in modalities else modalities


def _voice(voice: Voice) -> str:
    return voice.id if isinstance(voice, CustomVoice) else voice
