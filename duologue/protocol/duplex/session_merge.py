"""The merge of a duplex patch into a session's configuration: all of it is applied, or nothing.

The Realtime part is merged as ever; here is what the dialect means differently. This module must
not know who obeys the configuration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.config_checks import ANYTHING, Supported, check_range
from duologue.protocol.duplex.config import DuplexConfig, OverlapPolicy
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.session_config import (
    SemanticVad,
    ServerVad,
    SessionConfig,
    TurnDetection,
)
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import AudioInputPatch, AudioPatch

_BARGE_IN_MS_RANGE = (0, 10_000)
_IDLE_TIMEOUT_S_RANGE = (1.0, 3600.0)
_TOP_K_RANGE = (1, 2048)
_SEED_RANGE = (1, 2**53 - 1)
"""Every JSON reader has these as they are."""

_DEFAULTS = DuplexConfig()
_T = TypeVar("_T")


def duplex_default(config: SessionConfig) -> SessionConfig:
    """Return what is in force before a duplex client says anything.

    Args:
        config: The same for a Realtime client.
    """
    return replace(config, input_format=PcmFormat(rate=16000), duplex=_DEFAULTS)


def merge_duplex(
    config: SessionConfig, patch: DuplexPatch, supported: Supported = ANYTHING
) -> SessionConfig:
    """Apply a patch to the configuration of a duplex session.

    Raises:
        ProtocolError: A value is not allowed; ``param`` names it.
        LimitExceeded: A text or a list is too long.
    """
    if patch.type == "transcription":
        raise refused(
            "a duplex session answers; to transcribe only, connect without autostart=0",
            "session.type",
        )
    if patch.ref_audio is not UNSET and patch.ref_audio is not None:
        raise refused(
            "ref_audio: no model here clones voices; leave it out and choose a voice by its name",
            "session.ref_audio",
            ErrorCode.UNSUPPORTED,
        )
    current = config.duplex or _DEFAULTS
    audio = patch.audio or AudioPatch()
    heard = audio.input or AudioInputPatch()
    left_to_server = current.turns_left_to_server
    if heard.turn_detection is None:
        left_to_server = True
        heard = msgspec.structs.replace(heard, turn_detection=UNSET)
        patch = msgspec.structs.replace(patch, audio=msgspec.structs.replace(audio, input=heard))
    elif heard.turn_detection is not UNSET:
        left_to_server = False
    merged = merge(config, patch, supported)
    detection = merged.turn_detection
    if left_to_server and not current.turns_left_to_server:
        detection = server_choice(supported.turn_detection)
    return replace(
        merged,
        turn_detection=detection,
        duplex=DuplexConfig(
            turns_left_to_server=left_to_server,
            overlap_policy=_overlap_policy(current, patch, detection),
            overlap_barge_in_ms=_barge_in_ms(current, patch),
            playback_commit_policy=_settled(
                patch.playback_commit_policy,
                current.playback_commit_policy,
                _DEFAULTS.playback_commit_policy,
            ),
            auto_response=_settled(patch.auto_response, current.auto_response, True),
            idle_timeout_s=_idle_timeout_s(current, patch),
            top_k=_drawn(current.top_k, patch.top_k, _TOP_K_RANGE, "session.top_k", supported),
            seed=_seed(current, patch, supported),
        ),
    )


def server_choice(detectors: frozenset[str]) -> TurnDetection | None:
    """Return the turn detection of a client that leaves turns to the server.

    Args:
        detectors: What there is; with none, the model decides.
    """
    if "semantic_vad" in detectors:
        return SemanticVad()
    return ServerVad() if "server_vad" in detectors else None


def _overlap_policy(
    current: DuplexConfig, patch: DuplexPatch, detection: TurnDetection | None
) -> OverlapPolicy | None:
    policy = _settled(patch.overlap_policy, current.overlap_policy, None)
    if policy == "barge_in_on_speech" and detection is None:
        raise refused(
            "overlap_policy is barge_in_on_speech, and nobody listens for speech here: the model "
            "decides what to do about it. Allowed is listen_only.",
            "session.overlap_policy",
        )
    return policy


def _barge_in_ms(current: DuplexConfig, patch: DuplexPatch) -> int | None:
    value = _settled(patch.overlap_barge_in_ms, current.overlap_barge_in_ms, None)
    if value is not None:
        check_range(value, _BARGE_IN_MS_RANGE, "session.overlap_barge_in_ms", "ms")
    return value


def _idle_timeout_s(current: DuplexConfig, patch: DuplexPatch) -> float | None:
    value = _settled(patch.idle_timeout_s, current.idle_timeout_s, None)
    if value is not None:
        check_range(value, _IDLE_TIMEOUT_S_RANGE, "session.idle_timeout_s", "s")
    return value


def _seed(current: DuplexConfig, patch: DuplexPatch, supported: Supported) -> int | None:
    seed = _drawn(current.seed, patch.seed, _SEED_RANGE, "session.seed", supported)
    if supported.persona_stays and seed != current.seed:
        raise refused(
            "the model has spoken, and draws from the seed that it began with; "
            "open another session",
            "session.seed",
            ErrorCode.CANNOT_UPDATE_SEED,
        )
    return seed


def _drawn(
    current: int | None,
    change: int | UnsetType | None,
    limits: tuple[int, int],
    param: str,
    supported: Supported,
) -> int | None:
    value = _settled(change, current, None)
    if value is None or value == current:
        return value
    if not supported.sampling:
        raise refused(
            f"{param}: this model cannot be told how it draws; leave it out",
            param,
            ErrorCode.UNSUPPORTED,
        )
    return check_range(value, limits, param)


def _settled(change: _T | UnsetType | None, current: _T, cleared: _T) -> _T:
    if change is UNSET:
        return current
    return cleared if change is None else change
