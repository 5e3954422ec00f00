"""The pure merge of a patch into a session's configuration: all of it is applied, or nothing.

This module must not know who obeys the configuration.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import AudioFormat, FormatPatch
from duologue.protocol.config_checks import (
    ANYTHING,
    Supported,
    check_instructions,
    check_max_tokens,
    check_modalities,
    check_nesting,
    check_range,
    check_temperature,
    check_tools,
    check_voice,
    check_written,
    merge_format,
)
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.session_config import (
    DEFAULT_TRANSCRIPTION_MODEL,
    RetentionRatio,
    SemanticVad,
    ServerVad,
    SessionConfig,
    SessionKind,
    TraceLabels,
    Transcription,
    Truncation,
    TurnDetection,
    Voice,
)
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)

_SPEED_RANGE = (0.25, 1.5)
_PROBABILITY_RANGE = (0.0, 1.0)
_PREFIX_PADDING_MS_RANGE = (0, 10_000)
_SILENCE_MS_RANGE = (10, 30_000)
_IDLE_TIMEOUT_MS_RANGE = (1_000, 3_600_000)
_POST_INSTRUCTIONS_RANGE = (100, 1_000_000)

_DEFAULTS = SessionConfig()
_T = TypeVar("_T")


def merge(
    config: SessionConfig, patch: SessionPatch, supported: Supported = ANYTHING
) -> SessionConfig:
    """Apply a patch to a configuration, all of it or nothing.

    A null for ``audio``, one of its halves or a format counts as absent: a format has no "off",
    and must never change unasked.

    Raises:
        ProtocolError: A value is not allowed; ``param`` names it.
        LimitExceeded: A text or a list is too long.
    """
    audio = patch.audio or AudioPatch()
    inp, out = audio.input or AudioInputPatch(), audio.output or AudioOutputPatch()
    kind = _kind(config.kind, patch.type, supported)
    merged = SessionConfig(
        kind=kind,
        instructions=check_instructions(
            _settled(patch.instructions, config.instructions, _DEFAULTS.instructions),
            "session.instructions",
        ),
        output_modalities=check_modalities(
            _settled(
                patch.output_modalities, config.output_modalities, _DEFAULTS.output_modalities
            ),
            "session.output_modalities",
        ),
        input_format=_format(config.input_format, inp.format, "session.audio.input.format"),
        output_format=_format(config.output_format, out.format, "session.audio.output.format"),
        turn_detection=_turn_detection(config.turn_detection, inp.turn_detection, supported),
        transcription=_transcription(config.transcription, inp.transcription, kind),
        noise_reduction=_settled(inp.noise_reduction, config.noise_reduction, None),
        voice=_voice(config.voice, out.voice, supported),
        speed=check_range(
            _settled(out.speed, config.speed, _DEFAULTS.speed),
            _SPEED_RANGE,
            "session.audio.output.speed",
        ),
        tools=check_tools(_settled(patch.tools, config.tools, ()), "session.tools"),
        tool_choice=_settled(patch.tool_choice, config.tool_choice, _DEFAULTS.tool_choice),
        parallel_tool_calls=_settled(
            patch.parallel_tool_calls, config.parallel_tool_calls, _DEFAULTS.parallel_tool_calls
        ),
        max_output_tokens=check_max_tokens(
            _settled(
                patch.max_output_tokens, config.max_output_tokens, _DEFAULTS.max_output_tokens
            ),
            "session.max_output_tokens",
        ),
        tracing=_settled(patch.tracing, config.tracing, None),
        temperature=check_temperature(
            _settled(patch.temperature, config.temperature, None), "session.temperature"
        ),
        truncation=_truncation(_settled(patch.truncation, config.truncation, _DEFAULTS.truncation)),
        duplex=config.duplex,
    )
    _check_size(merged)
    if supported.persona_stays:
        _check_persona(config, merged, supported)
    return merged


def _check_persona(config: SessionConfig, merged: SessionConfig, supported: Supported) -> None:
    """Whoever says once more what it is already, changes nothing."""
    if merged.voice != config.voice:
        raise refused(
            "the model has spoken and cannot change its voice; open another session",
            "session.audio.output.voice",
            ErrorCode.CANNOT_UPDATE_VOICE,
        )
    if supported.reads_instructions and merged.instructions != config.instructions:
        raise refused(
            "the model was told in the beginning who it is, and has spoken since; "
            "open another session",
            "session.instructions",
            ErrorCode.CANNOT_UPDATE_INSTRUCTIONS,
        )


def _check_size(config: SessionConfig) -> None:
    """The whole session is shown in one message."""
    if isinstance(config.tracing, TraceLabels):
        check_nesting(config.tracing.metadata, "session.tracing.metadata")
    texts = (config.instructions, config.tools, config.transcription, config.tracing, config.voice)
    check_written(texts, "session")


def _settled(change: _T | UnsetType | None, current: _T, cleared: _T) -> _T:
    """The value in force after a change: absent keeps, null clears."""
    if change is UNSET:
        return current
    return cleared if change is None else change


def _kind(
    current: SessionKind, change: SessionKind | UnsetType, supported: Supported
) -> SessionKind:
    if change is UNSET or change == current:
        return current
    if change == "realtime":
        raise refused(
            "a transcription session stays one; for answers, connect without intent=transcription",
            "session.type",
        )
    if not supported.transcribes:
        raise refused(
            "a transcription session needs a recogniser, and there is none for this model here",
            "session.type",
        )
    return change


def _voice(current: Voice, change: Voice | UnsetType | None, supported: Supported) -> Voice:
    if change is UNSET:
        return current
    if change is None:
        return _DEFAULTS.voice
    return check_voice(change, supported, "session.audio.output.voice")


def _format(
    current: AudioFormat, change: FormatPatch | UnsetType | None, param: str
) -> AudioFormat:
    if change is UNSET or change is None:
        return current
    return merge_format(current, change, param)


def _transcription(
    current: Transcription | None,
    change: TranscriptionPatch | UnsetType | None,
    kind: SessionKind,
) -> Transcription | None:
    if kind == "transcription":
        # It is what the session is for, so there is no "off".
        current, change = current or Transcription(), UNSET if change is None else change
    if change is UNSET:
        return current
    if change is None:
        return None
    base = current or Transcription()
    return Transcription(
        model=_settled(change.model, base.model, DEFAULT_TRANSCRIPTION_MODEL),
        language=_settled(change.language, base.language, None),
        prompt=_settled(change.prompt, base.prompt, None),
    )


def _turn_detection(
    current: TurnDetection | None,
    change: TurnDetectionPatch | UnsetType | None,
    supported: Supported,
) -> TurnDetection | None:
    if change is UNSET:
        return current
    if change is None:
        return None
    param = "session.audio.input.turn_detection"
    if change.type is not UNSET:
        kind: str = change.type
    elif current is not None:
        kind = "server_vad" if isinstance(current, ServerVad) else "semantic_vad"
    else:
        raise refused(
            "turn detection is off: name the type to switch it on",
            f"{param}.type",
            ErrorCode.MISSING_PARAMETER,
        )
    if kind not in supported.turn_detection:
        known = ", ".join(sorted(supported.turn_detection)) or "null only"
        raise refused(f"{kind} is not available here; there is {known}", f"{param}.type")
    if kind == "server_vad":
        return _server_vad(
            current if isinstance(current, ServerVad) else ServerVad(), change, param
        )
    base = current if isinstance(current, SemanticVad) else SemanticVad()
    return _semantic_vad(base, change, param)


def _server_vad(base: ServerVad, change: TurnDetectionPatch, param: str) -> ServerVad:
    if change.eagerness is not UNSET and change.eagerness is not None:
        raise refused("eagerness belongs to semantic_vad, not to server_vad", f"{param}.eagerness")
    fresh = ServerVad()
    idle_timeout_ms = _settled(change.idle_timeout_ms, base.idle_timeout_ms, None)
    if idle_timeout_ms is not None:
        check_range(idle_timeout_ms, _IDLE_TIMEOUT_MS_RANGE, f"{param}.idle_timeout_ms", "ms")
    return ServerVad(
        threshold=check_range(
            _settled(change.threshold, base.threshold, fresh.threshold),
            _PROBABILITY_RANGE,
            f"{param}.threshold",
        ),
        prefix_padding_ms=check_range(
            _settled(change.prefix_padding_ms, base.prefix_padding_ms, fresh.prefix_padding_ms),
            _PREFIX_PADDING_MS_RANGE,
            f"{param}.prefix_padding_ms",
            "ms",
        ),
        silence_duration_ms=check_range(
            _settled(
                change.silence_duration_ms, base.silence_duration_ms, fresh.silence_duration_ms
            ),
            _SILENCE_MS_RANGE,
            f"{param}.silence_duration_ms",
            "ms",
        ),
        idle_timeout_ms=idle_timeout_ms,
        create_response=_settled(change.create_response, base.create_response, True),
        interrupt_response=_settled(change.interrupt_response, base.interrupt_response, True),
    )


def _semantic_vad(base: SemanticVad, change: TurnDetectionPatch, param: str) -> SemanticVad:
    server_only = ("threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms")
    for name in server_only:
        if getattr(change, name) not in (UNSET, None):
            raise refused(f"{name} belongs to server_vad, not to semantic_vad", f"{param}.{name}")
    return SemanticVad(
        eagerness=_settled(change.eagerness, base.eagerness, "auto"),
        create_response=_settled(change.create_response, base.create_response, True),
        interrupt_response=_settled(change.interrupt_response, base.interrupt_response, True),
    )


def _truncation(truncation: Truncation) -> Truncation:
    if isinstance(truncation, RetentionRatio):
        check_range(
            truncation.retention_ratio, _PROBABILITY_RANGE, "session.truncation.retention_ratio"
        )
        limits = truncation.token_limits
        if limits is not None and limits.post_instructions is not None:
            check_range(
                limits.post_instructions,
                _POST_INSTRUCTIONS_RANGE,
                "session.truncation.token_limits.post_instructions",
                "tokens",
            )
    return truncation
