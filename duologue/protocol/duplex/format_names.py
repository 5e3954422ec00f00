"""The names that audio formats have in the duplex dialect.

This module must not know rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from duologue.protocol.audio_formats import AudioFormat, format_sample_bytes

FormatType: TypeAlias = Literal[
    "audio/pcm", "audio/pcmu", "audio/pcma", "audio/pcm_f32le", "audio/opus"
]

FORMAT_TYPES: Mapping[str, FormatType] = MappingProxyType(
    {
        "pcm16": "audio/pcm",
        "pcm_s16le": "audio/pcm",
        "s16le": "audio/pcm",
        "pcm": "audio/pcm",
        "audio/pcm": "audio/pcm",
        "pcm_f32le": "audio/pcm_f32le",
        "audio/pcm_f32le": "audio/pcm_f32le",
        "g711_ulaw": "audio/pcmu",
        "audio/pcmu": "audio/pcmu",
        "g711_alaw": "audio/pcma",
        "audio/pcma": "audio/pcma",
        "opus": "audio/opus",
        "audio/opus": "audio/opus",
    }
)
"""What clients write, and what the Realtime API calls it."""

_SHOWN: Mapping[str, str] = MappingProxyType(
    {
        "audio/pcm": "pcm16",
        "audio/pcm_f32le": "pcm_f32le",
        "audio/pcmu": "g711_ulaw",
        "audio/pcma": "g711_alaw",
        "audio/opus": "opus",
    }
)


def duplex_name(audio_format: AudioFormat) -> str:
    """Return the name that a client is shown."""
    return _SHOWN[str(audio_format.__struct_config__.tag)]


SAMPLE_BYTES: Mapping[str, int] = MappingProxyType(
    {duplex_name(kind()): format_sample_bytes(kind()) for kind in get_args(AudioFormat)}
)
"""Bytes of one sample, by the name that a client is shown; of Opus, which has none, 1."""
