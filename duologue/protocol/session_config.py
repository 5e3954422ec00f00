"""The effective configuration of a session, and the session resource that clients are shown.

This module must not know how a configuration came about (``session_patch``) or what obeys it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import AudioFormat, PcmFormat
from duologue.protocol.duplex.config import DuplexConfig

SessionKind: TypeAlias = Literal["realtime", "transcription"]
Modality: TypeAlias = Literal["text", "audio"]
Eagerness: TypeAlias = Literal["low", "medium", "high", "auto"]
JsonObject: TypeAlias = dict[str, Any]
"""Only for what has no shape of ours: the JSON Schema of a tool, metadata of a trace."""

DEFAULT_VOICE = "alloy"
DEFAULT_TRANSCRIPTION_MODEL = "default"


class ServerVad(msgspec.Struct, frozen=True, kw_only=True, tag="server_vad"):
    """The server ends a turn after a silence."""

    threshold: float = 0.5
    """Speech probability, 0 to 1."""

    prefix_padding_ms: int = 300
    """Audio kept from before the detected start."""

    silence_duration_ms: int = 500
    """Silence that ends the turn."""

    idle_timeout_ms: int | None = None
    """After this long without speech the assistant speaks up; null for never."""

    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(msgspec.Struct, frozen=True, kw_only=True, tag="semantic_vad"):
    """The server ends a turn when the words and their melody sound finished."""

    eagerness: Eagerness = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection: TypeAlias = ServerVad | SemanticVad


class Transcription(msgspec.Struct, frozen=True, kw_only=True):
    """How the user's speech is transcribed. No further key: strict clients die of one."""

    model: str = DEFAULT_TRANSCRIPTION_MODEL
    language: str | None = None
    prompt: str | None = None


class NoiseReduction(msgspec.Struct, frozen=True, kw_only=True):
    """Where the microphone is."""

    type: Literal["near_field", "far_field"]


class CustomVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice named by id; on the wire an object, where the client sent an object."""

    id: str


Voice: TypeAlias = str | CustomVoice


class FunctionTool(msgspec.Struct, frozen=True, kw_only=True, tag="function"):
    """A function of the client that the model may call."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    """JSON Schema of the arguments."""


class FunctionChoice(msgspec.Struct, frozen=True, kw_only=True, tag="function"):
    """The model must call this function."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | FunctionChoice
MaxTokens: TypeAlias = int | Literal["inf"]


class TraceLabels(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the client wants its trace named."""

    workflow_name: str | None = None
    group_id: str | None = None
    metadata: JsonObject | None = None


Tracing: TypeAlias = Literal["auto"] | TraceLabels


class TokenLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the context overflows, other than at the model's own limit."""

    post_instructions: int | None = None
    """Tokens of the conversation after the instructions and tools: 100 or more."""


class RetentionRatio(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="retention_ratio"
):
    """Keep this share of the context when it overflows."""

    retention_ratio: float
    """0 to 1. The rest is room for the next turns, whose prompts then begin alike."""

    token_limits: TokenLimits | None = None


Truncation: TypeAlias = Literal["auto", "disabled"] | RetentionRatio

DEFAULT_FORMAT: AudioFormat = PcmFormat()
DEFAULT_TURN_DETECTION: TurnDetection = ServerVad()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """What is in force: every setting has a value. ``merge`` makes a new one from a patch."""

    kind: SessionKind = "realtime"
    instructions: str = ""
    output_modalities: tuple[Modality, ...] = ("audio",)
    input_format: AudioFormat = DEFAULT_FORMAT
    output_format: AudioFormat = DEFAULT_FORMAT
    turn_detection: TurnDetection | None = DEFAULT_TURN_DETECTION
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    voice: Voice = DEFAULT_VOICE
    speed: float = 1.0
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    max_output_tokens: MaxTokens = "inf"
    tracing: Tracing | None = None
    truncation: Truncation = "auto"
    temperature: float | None = None
    """None: as the model likes."""
    duplex: DuplexConfig | None = None
    """What only a duplex session has."""

    @property
    def interrupts(self) -> bool:
        """Speech over an answer stops it."""
        if self.turn_detection is None:
            return False
        if self.duplex is not None and self.duplex.overlap_policy is not None:
            return self.duplex.overlap_policy == "barge_in_on_speech"
        return self.turn_detection.interrupt_response

    @property
    def answers_turns(self) -> bool:
        """A turn that was detected is answered unasked."""
        if self.turn_detection is None or not self.turn_detection.create_response:
            return False
        return self.duplex is None or self.duplex.auto_response


class AudioInputResource(msgspec.Struct, frozen=True, kw_only=True):
    """The input half of the audio settings."""

    format: AudioFormat
    transcription: Transcription | None
    noise_reduction: NoiseReduction | None
    turn_detection: TurnDetection | None


class AudioOutputResource(msgspec.Struct, frozen=True, kw_only=True):
    """The output half of the audio settings."""

    format: AudioFormat
    voice: Voice
    speed: float


class AudioResource(msgspec.Struct, frozen=True, kw_only=True):
    """Both halves of the audio settings."""

    input: AudioInputResource
    output: AudioOutputResource


class SessionResource(msgspec.Struct, frozen=True, kw_only=True, tag="realtime"):
    """The whole effective session, as ``session.created`` and ``session.updated`` show it."""

    object: Literal["realtime.session"] = "realtime.session"
    id: str
    model: str
    expires_at: int
    """Unix time in seconds at which the session ends."""

    instructions: str
    output_modalities: tuple[Modality, ...]
    audio: AudioResource
    tools: tuple[FunctionTool, ...]
    tool_choice: ToolChoice
    max_output_tokens: MaxTokens
    tracing: Tracing | None
    truncation: Truncation
    temperature: float | UnsetType = UNSET
    """Only where the client has set one: GA clients know no such field."""


class TranscriptionAudioResource(msgspec.Struct, frozen=True, kw_only=True):
    """The audio settings of a transcription session: it has no output."""

    input: AudioInputResource


class TranscriptionResource(msgspec.Struct, frozen=True, kw_only=True, tag="transcription"):
    """The same for a session that only listens: no answer comes of it.

    Its only model is that of its transcription.
    """

    object: Literal["realtime.transcription_session"] = "realtime.transcription_session"
    id: str
    expires_at: int
    """Unix time in seconds at which the session ends."""

    audio: TranscriptionAudioResource


AnySession: TypeAlias = SessionResource | TranscriptionResource


def to_wire(config: SessionConfig, session_id: str, model: str, expires_at: int) -> AnySession:
    """Return the session resource that a client is shown.

    Units:
        ``expires_at`` is Unix time in seconds.
    """
    listening = AudioInputResource(
        format=config.input_format,
        transcription=config.transcription,
        noise_reduction=config.noise_reduction,
        turn_detection=config.turn_detection,
    )
    if config.kind == "transcription":
        return TranscriptionResource(
            id=session_id,
            expires_at=expires_at,
            audio=TranscriptionAudioResource(input=listening),
        )
    speaking = AudioOutputResource(
        format=config.output_format, voice=config.voice, speed=config.speed
    )
    return SessionResource(
        id=session_id,
        model=model,
        expires_at=expires_at,
        instructions=config.instructions,
        output_modalities=config.output_modalities,
        audio=AudioResource(input=listening, output=speaking),
        tools=config.tools,
        tool_choice=config.tool_choice,
        max_output_tokens=config.max_output_tokens,
        tracing=config.tracing,
        truncation=config.truncation,
        temperature=UNSET if config.temperature is None else config.temperature,
    )
