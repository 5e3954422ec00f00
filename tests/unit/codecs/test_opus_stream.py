from __future__ import annotations

import pytest

from duologue.codecs.decoder import input_decoder
from duologue.codecs.encoder import output_encoder
from duologue.codecs.opus import OpusDecoder, OpusEncoder
from duologue.codecs.opus_packets import join, packet_samples, split
from duologue.codecs.opus_stream import SETTINGS, OpusInput, OpusOutput
from duologue.core.errors import CodecError
from duologue.protocol.audio_formats import OpusFormat, OpusRate
from tests.unit.codecs.tones import level_db, loudest_hz, tone

PRE_SKIP = 312
RATES: list[OpusRate] = [24000, 48000]


def played(wire: bytes, rate_hz: int) -> bytes:
    decoder = OpusDecoder(rate_hz, PRE_SKIP)
    return b"".join(decoder.decode(packet) for packet in split(wire)) + decoder.flush()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("from_hz", [16000, 24000])
def test_an_answer_reaches_the_client_with_its_pitch_length_and_level(
    from_hz: int, rate: OpusRate
) -> None:
    encoder = output_encoder(from_hz, OpusFormat(rate=rate))
    assert isinstance(encoder, OpusOutput)
    assert encoder._encoder.pre_skip == PRE_SKIP, "what docs/protocol.md says"
    pcm, frame = tone(from_hz), from_hz // 25
    wire = b"".join(encoder.encode(pcm[i : i + frame]) for i in range(0, len(pcm), frame))
    wire += encoder.flush()
    assert {packet_samples(packet) for packet in split(wire)} == {48 * SETTINGS.frame_ms}
    out = played(wire, 24000)
    assert 1.0 <= len(out) / 2 / 24000 < 1.0 + SETTINGS.frame_ms / 1000
    assert loudest_hz(out[:48000], 24000) == pytest.approx(1000, abs=5)
    assert level_db(out[:48000], 24000) == pytest.approx(0, abs=1)


def test_after_a_flush_nothing_of_the_old_answer_waits() -> None:
    encoder = output_encoder(24000, OpusFormat())
    encoder.encode(tone(24000, 0.03))
    assert len(split(encoder.flush())) == 1
    assert encoder.flush() == b""
    assert encoder.encode(b"") == b""
    assert split(encoder.encode(tone(24000, 0.04))) != []


@pytest.mark.parametrize("rate", RATES)
def test_the_microphone_is_heard_packet_by_packet(rate: OpusRate) -> None:
    encoder = OpusEncoder(rate)
    packets = [*encoder.encode(tone(rate)), *encoder.flush()]
    decoder = input_decoder(OpusFormat(rate=rate), 16000)
    assert isinstance(decoder, OpusInput)
    wires = [join(packets[i : i + 3]) for i in range(0, len(packets), 3)]
    assert sum(map(decoder.seconds, wires)) == pytest.approx(1.02)
    pcm = b"".join(map(decoder.decode, wires)) + decoder.flush()
    assert decoder.wire_samples == rate * 102 // 100
    assert len(pcm) / 2 / 16000 == pytest.approx(1.02, abs=0.001)
    assert loudest_hz(pcm, 16000) == pytest.approx(1000, abs=5)
    assert decoder.drop_dangling() == 0


def test_who_joins_in_the_middle_hears_the_rest() -> None:
    packets = OpusEncoder(24000).encode(tone(24000))
    decoder = input_decoder(OpusFormat(), 16000)
    pcm = decoder.decode(join(packets[25:]))
    assert loudest_hz(pcm[3200:], 16000) == pytest.approx(1000, abs=5)


def test_a_packet_that_cannot_be_decoded_is_made_up() -> None:
    packets = OpusEncoder(24000).encode(tone(24000))
    broken = bytes((packets[20][0] | 3, 0xFF, *packets[20][2:]))
    decoder = input_decoder(OpusFormat(), 16000)
    pcm = decoder.decode(join([*packets[:20], broken[:2], *packets[21:]]))
    assert decoder.dropped_bytes == 2
    assert len(pcm) / 2 / 16000 == pytest.approx(1.0, abs=0.05)


def test_what_is_no_run_of_packets_changes_nothing() -> None:
    decoder = input_decoder(OpusFormat(), 16000)
    for attempt in (decoder.decode, decoder.seconds):
        with pytest.raises(CodecError):
            attempt(b"\x00\x09abc")
    assert decoder.wire_samples == 0
