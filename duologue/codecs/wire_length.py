"""How long audio on the wire is, without decoding it.

This module must not know messages.
"""

from __future__ import annotations

from duologue.codecs.opus_packets import CLOCK_HZ, duration_samples, split
from duologue.protocol.audio_formats import (
    AudioFormat,
    OpusFormat,
    format_rate_hz,
    format_sample_bytes,
)


def wire_samples(wire: bytes, audio_format: AudioFormat) -> int:
    """Return how many samples some audio is, at the rate of the wire.

    Raises:
        CodecError: It is to be Opus, and is none.
    """
    if isinstance(audio_format, OpusFormat):
        return duration_samples(split(wire)) * audio_format.rate // CLOCK_HZ
    return len(wire) // format_sample_bytes(audio_format)


def wire_seconds(wire: bytes, audio_format: AudioFormat) -> float:
    """Return how many seconds some audio is.

    Raises:
        CodecError: It is to be Opus, and is none.
    """
    return wire_samples(wire, audio_format) / format_rate_hz(audio_format)
