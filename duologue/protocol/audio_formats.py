"""The wire formats of audio that a session can negotiate.

This module must not know how to convert audio: that is ``codecs``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

PcmRate: TypeAlias = Literal[8000, 16000, 22050, 24000, 48000]
PCM_RATES_HZ: tuple[PcmRate, ...] = get_args(PcmRate)
OpusRate: TypeAlias = Literal[24000, 48000]
OPUS_RATES_HZ: tuple[OpusRate, ...] = get_args(OpusRate)
G711_RATE_HZ: Literal[8000] = 8000


class PcmFormat(msgspec.Struct, frozen=True, kw_only=True, tag="audio/pcm"):
    """Signed 16-bit little-endian mono PCM."""

    rate: PcmRate = 24000
    """Samples per second. Stock clients know only 24000, so others are used only on request."""


class PcmuFormat(msgspec.Struct, frozen=True, kw_only=True, tag="audio/pcmu"):
    """G.711 mu-law, 8 kHz mono, one byte a sample."""


class PcmaFormat(msgspec.Struct, frozen=True, kw_only=True, tag="audio/pcma"):
    """G.711 A-law, 8 kHz mono, one byte a sample."""


class FloatPcmFormat(msgspec.Struct, frozen=True, kw_only=True, tag="audio/pcm_f32le"):
    """32-bit little-endian floats, mono, full scale at 1.0."""

    rate: PcmRate = 24000


class OpusFormat(msgspec.Struct, frozen=True, kw_only=True, tag="audio/opus"):
    """Opus, mono: whole packets, each after its length in two bytes, big-endian.

    A message holds any number of packets, 2 s at most. The server sends packets of 40 ms at about
    20 kbit/s; of each answer, the first 312 samples of 48 kHz are the encoder's look-ahead, which
    a decoder drops (pre-skip). Packets of clients may be of any duration.
    """

    rate: OpusRate = 24000
    """Of the audio before it was encoded, and the rate in which ``start_sample`` counts."""


AudioFormat: TypeAlias = PcmFormat | PcmuFormat | PcmaFormat | FloatPcmFormat | OpusFormat


def format_rate_hz(audio_format: AudioFormat) -> int:
    """Samples per second on the wire."""
    return getattr(audio_format, "rate", G711_RATE_HZ)


def format_sample_bytes(audio_format: AudioFormat) -> int:
    """Bytes of one sample on the wire; of Opus, which has none, 1."""
    return _SAMPLE_BYTES.get(type(audio_format), 1)


def named(audio_format: AudioFormat) -> str:
    """A format for an error message."""
    return f"{audio_format.__struct_config__.tag} at {format_rate_hz(audio_format)} Hz"


_SAMPLE_BYTES: dict[type, int] = {PcmFormat: 2, FloatPcmFormat: 4}


class FormatPatch(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A change of an audio format. What is absent stays, where the type stays too."""

    type: (
        Literal["audio/pcm", "audio/pcmu", "audio/pcma", "audio/pcm_f32le", "audio/opus"]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    rate: int | msgspec.UnsetType | None = msgspec.UNSET
    """For PCM 8000, 16000, 22050, 24000 or 48000; for G.711 absent or 8000; for Opus 24000 or
    48000."""
