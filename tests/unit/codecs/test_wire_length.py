from __future__ import annotations

import pytest

from duologue.codecs.wire_length import wire_samples, wire_seconds
from duologue.core.errors import CodecError
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    OpusFormat,
    PcmaFormat,
    PcmFormat,
)

CELT_20_MS = b"\0\3" + bytes([0b11111000]) + b"xy"


@pytest.mark.parametrize(
    ("wire", "audio_format", "samples", "seconds"),
    [
        (bytes(480), PcmFormat(rate=24000), 240, 0.01),
        (bytes(481), PcmFormat(rate=24000), 240, 0.01),
        (bytes(80), PcmaFormat(), 80, 0.01),
        (bytes(960), FloatPcmFormat(rate=24000), 240, 0.01),
        (CELT_20_MS * 3, OpusFormat(rate=24000), 1440, 0.06),
        (b"", OpusFormat(rate=48000), 0, 0.0),
    ],
)
def test_bytes_on_the_wire_last_so_long(
    wire: bytes, audio_format: AudioFormat, samples: int, seconds: float
) -> None:
    assert wire_samples(wire, audio_format) == samples
    assert wire_seconds(wire, audio_format) == pytest.approx(seconds)


def test_what_is_no_opus_is_refused() -> None:
    with pytest.raises(CodecError):
        wire_samples(b"\0\xffx", OpusFormat(rate=24000))
