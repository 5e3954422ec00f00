"""Also the wire formats' half of case "one tone through every format" (output side)."""

from __future__ import annotations

import pytest

from duologue.codecs.encoder import OutputEncoder
from duologue.codecs.float_pcm import FloatReader
from duologue.codecs.g711 import decode_alaw, decode_ulaw
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
    format_rate_hz,
    format_sample_bytes,
)
from tests.unit.codecs.tones import level_db, loudest_hz, tone

FORMATS: list[AudioFormat] = [
    PcmFormat(rate=8000),
    PcmFormat(rate=16000),
    PcmFormat(rate=24000),
    PcmFormat(rate=48000),
    PcmFormat(rate=22050),
    PcmuFormat(),
    PcmaFormat(),
    FloatPcmFormat(rate=16000),
    FloatPcmFormat(rate=24000),
]


def heard(wire: bytes, audio_format: AudioFormat) -> bytes:
    match audio_format:
        case PcmuFormat():
            return decode_ulaw(wire)
        case PcmaFormat():
            return decode_alaw(wire)
        case FloatPcmFormat():
            return FloatReader().read(wire)
        case _:
            return wire


@pytest.mark.parametrize("from_hz", [16000, 24000])
@pytest.mark.parametrize("audio_format", FORMATS, ids=str)
def test_a_tone_reaches_the_client_with_its_pitch_length_and_level(
    audio_format: AudioFormat, from_hz: int
) -> None:
    encoder = OutputEncoder(from_hz, audio_format)
    pcm, frame = tone(from_hz), from_hz // 25
    wire = b"".join(encoder.encode(pcm[i : i + frame]) for i in range(0, len(pcm), frame))
    wire += encoder.flush()
    rate_hz = format_rate_hz(audio_format)
    assert len(wire) == rate_hz * format_sample_bytes(audio_format)
    out = heard(wire, audio_format)
    assert loudest_hz(out, rate_hz) == pytest.approx(1000, abs=5)
    assert level_db(out, rate_hz) == pytest.approx(0, abs=1)


def test_speech_at_the_clients_own_rate_and_encoding_is_not_touched() -> None:
    pcm = tone(24000, 0.02)
    assert OutputEncoder(24000, PcmFormat()).encode(pcm) is pcm


@pytest.mark.parametrize("audio_format", FORMATS, ids=str)
def test_after_a_flush_nothing_of_the_old_speech_is_left(audio_format: AudioFormat) -> None:
    used, fresh = OutputEncoder(16000, audio_format), OutputEncoder(16000, audio_format)
    used.encode(tone(16000, 0.0333))
    used.flush()
    speech = tone(16000, 0.1)
    assert used.encode(speech) + used.flush() == fresh.encode(speech) + fresh.flush()


def test_a_flush_of_nothing_is_nothing() -> None:
    assert OutputEncoder(24000, PcmuFormat()).flush() == b""
