"""Also the wire formats' half of case "one tone through every format" (input side)."""

from __future__ import annotations

import pytest

from duologue.codecs.decoder import InputDecoder, input_decoder
from duologue.codecs.float_pcm import encode_float
from duologue.codecs.g711 import encode_alaw, encode_ulaw
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
    format_rate_hz,
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


def on_the_wire(pcm: bytes, audio_format: AudioFormat) -> bytes:
    match audio_format:
        case PcmuFormat():
            return encode_ulaw(pcm)
        case PcmaFormat():
            return encode_alaw(pcm)
        case FloatPcmFormat():
            return encode_float(pcm)
        case _:
            return pcm


@pytest.mark.parametrize("to_hz", [16000, 24000])
@pytest.mark.parametrize("audio_format", FORMATS, ids=str)
def test_a_tone_reaches_the_engine_with_its_pitch_length_and_level(
    audio_format: AudioFormat, to_hz: int
) -> None:
    decoder = InputDecoder(audio_format, to_hz)
    wire = on_the_wire(tone(format_rate_hz(audio_format)), audio_format)
    pcm = b"".join(decoder.decode(wire[start : start + 960]) for start in range(0, len(wire), 960))
    assert loudest_hz(pcm, to_hz) == pytest.approx(1000, abs=5)
    assert len(pcm) / 2 / to_hz == pytest.approx(1, abs=0.0201)
    assert level_db(pcm, to_hz) == pytest.approx(0, abs=1)


SPLITS = {
    "one message": [96000],
    "bytes": [1],
    "threes": [3],
    "odd lengths": [1323],
    "alternating": [4063, 1697],
}


@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("to_hz", [16000, 24000])
def test_split_samples_are_put_together_again(sizes: list[int], to_hz: int) -> None:
    pcm = tone(24000, 2.0)
    whole = InputDecoder(PcmFormat(), to_hz)
    expected = whole.decode(pcm) + whole.flush()
    decoder = InputDecoder(PcmFormat(), to_hz)
    got, start, turn = b"", 0, 0
    while start < len(pcm):
        size = sizes[turn % len(sizes)]
        got += decoder.decode(pcm[start : start + size])
        start, turn = start + size, turn + 1
    assert got + decoder.flush() == expected
    assert decoder.dropped_bytes == 0


def test_a_missing_last_byte_costs_one_sample_and_does_not_shift_the_next_turn() -> None:
    decoder = InputDecoder(PcmFormat(), 24000)
    pcm = tone(24000, 2.0)
    assert decoder.decode(pcm[:-1]) == pcm[:-2]
    assert decoder.drop_dangling() == 1
    assert decoder.drop_dangling() == 0
    assert decoder.decode(pcm) == pcm
    assert decoder.dropped_bytes == 1


def test_a_flush_returns_what_the_rate_converter_held() -> None:
    decoder = InputDecoder(PcmuFormat(), 24000)
    pcm = decoder.decode(encode_ulaw(tone(8000, 0.5)))
    held = decoder.flush()
    assert 0 < len(held) <= 24 * 3 * 2
    assert len(pcm + held) == 24000


def test_one_byte_of_g711_is_a_whole_sample() -> None:
    decoder = InputDecoder(PcmaFormat(), 8000)
    assert len(decoder.decode(b"\xd5")) == 2
    assert decoder.drop_dangling() == 0


@pytest.mark.parametrize("audio_format", FORMATS, ids=str)
def test_bytes_say_how_long_they_last(audio_format: AudioFormat) -> None:
    decoder = input_decoder(audio_format, 16000)
    wire = on_the_wire(tone(format_rate_hz(audio_format)), audio_format)
    assert decoder.seconds(wire) == pytest.approx(1)
    decoder.decode(wire)
    assert decoder.wire_samples == format_rate_hz(audio_format)
