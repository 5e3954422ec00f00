from __future__ import annotations

import msgspec
import pytest

from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
    format_rate_hz,
    format_sample_bytes,
)


@pytest.mark.parametrize(
    ("audio_format", "wire", "rate_hz", "sample_bytes"),
    [
        (PcmFormat(), {"type": "audio/pcm", "rate": 24000}, 24000, 2),
        (PcmFormat(rate=8000), {"type": "audio/pcm", "rate": 8000}, 8000, 2),
        (FloatPcmFormat(rate=16000), {"type": "audio/pcm_f32le", "rate": 16000}, 16000, 4),
        (PcmuFormat(), {"type": "audio/pcmu"}, 8000, 1),
        (PcmaFormat(), {"type": "audio/pcma"}, 8000, 1),
    ],
)
def test_formats_have_the_shape_that_clients_expect(
    audio_format: AudioFormat, wire: dict[str, object], rate_hz: int, sample_bytes: int
) -> None:
    assert msgspec.to_builtins(audio_format) == wire
    assert format_rate_hz(audio_format) == rate_hz
    assert format_sample_bytes(audio_format) == sample_bytes
