"""Encoder and decoder are judged by each other, and by what a caller would hear."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.codecs.opus import (
    CLOCK_HZ,
    MAX_PACKET_BYTES,
    Application,
    OpusDecoder,
    OpusEncoder,
    OpusRate,
    OpusSettings,
    packet_samples,
)
from duologue.core.errors import CodecError
from tests.unit.codecs.tones import level_db, loudest_hz, tone

RATES: tuple[OpusRate, ...] = get_args(OpusRate)


def voice(rate_hz: int, seconds: float, pitch_hz: float = 140.0) -> NDArray[np.float64]:
    """Harmonics under a slow rise and fall: enough of a voice for a codec."""
    place = np.arange(int(rate_hz * seconds)) / rate_hz
    harmonics = sum(np.sin(2 * np.pi * n * pitch_hz * place) / n for n in range(1, 12))
    return np.asarray(5000 * harmonics * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * place)))


def as_pcm(samples: NDArray[np.float64]) -> bytes:
    return np.rint(samples).astype("<i2").tobytes()


def samples_of(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(float)


def delay_samples(original: bytes, decoded: bytes) -> int:
    """By how much the second lags behind the first, from their correlation."""
    a, b = samples_of(original), samples_of(decoded)
    size = len(a) + len(b)
    spectrum = np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size))
    lag = int(np.argmax(np.fft.irfft(spectrum, size)))
    return lag if lag < size // 2 else lag - size


def snr_db(original: bytes, decoded: bytes) -> float:
    a, b = samples_of(original), samples_of(decoded)
    length = min(len(a), len(b))
    a, b = a[:length], b[:length]
    return float(10 * np.log10(np.sum(a**2) / np.sum((a - b) ** 2)))


def through(pcm: bytes, encoder: OpusEncoder, decoder: OpusDecoder) -> bytes:
    packets = encoder.encode(pcm) + encoder.flush()
    return b"".join(decoder.decode(packet) for packet in packets) + decoder.flush()


@pytest.mark.parametrize("application", get_args(Application))
@pytest.mark.parametrize("rate_hz", RATES)
def test_a_tone_keeps_pitch_level_and_length(rate_hz: OpusRate, application: Application) -> None:
    encoder = OpusEncoder(rate_hz, OpusSettings(application=application, bitrate_bps=48_000))
    decoder = OpusDecoder(rate_hz, encoder.pre_skip)
    sent = tone(rate_hz)
    heard = through(sent, encoder, decoder)
    assert len(sent) <= len(heard) < len(sent) + 2 * 2 * encoder.packet_samples
    heard = heard[: len(sent)]
    assert loudest_hz(heard, rate_hz) == pytest.approx(1000, abs=1)
    assert level_db(heard, rate_hz) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("application", get_args(Application))
def test_after_the_pre_skip_nothing_is_late(application: Application) -> None:
    encoder = OpusEncoder(48000, OpusSettings(application=application))
    assert encoder.pre_skip == (120 if application == "lowdelay" else 312)
    sent = as_pcm(voice(48000, 1.0))
    heard = through(sent, encoder, OpusDecoder(48000, encoder.pre_skip))
    # The part of the codec that models speech is off by a sixth of a millisecond.
    assert abs(delay_samples(sent, heard)) <= 8


def test_speech_comes_through_clearly_at_the_default_settings() -> None:
    sent = as_pcm(voice(24000, 2.0))
    encoder = OpusEncoder(24000)
    heard = through(sent, encoder, OpusDecoder(24000, encoder.pre_skip))
    # The rate converter of the decoder keeps its own delay, under 3 ms.
    lag = delay_samples(sent, heard)
    assert 0 <= lag <= 72
    assert snr_db(sent, heard[2 * lag :]) > 15


def test_packets_have_the_length_and_the_bit_rate_that_were_asked_for() -> None:
    for frame_ms in (10, 20, 40, 60):
        encoder = OpusEncoder(24000, OpusSettings(frame_ms=frame_ms, bitrate_bps=24_000))
        packets = encoder.encode(as_pcm(voice(24000, 1.2)))
        assert len(packets) == 1200 // frame_ms
        assert {packet_samples(packet) for packet in packets} == {48 * frame_ms}
        assert sum(map(len, packets)) * 8 / 1.2 == pytest.approx(24_000, rel=0.5)


@given(sizes=st.lists(st.integers(1, 2000), min_size=1, max_size=6))
def test_any_cutting_gives_the_same_packets(sizes: list[int]) -> None:
    pcm = as_pcm(voice(16000, 0.3))
    whole, cut = OpusEncoder(16000), OpusEncoder(16000)
    packets, start, turn = [], 0, 0
    while start < len(pcm):
        size = sizes[turn % len(sizes)]
        packets += cut.encode(pcm[start : start + size])
        start, turn = start + size, turn + 1
    assert packets + cut.flush() == whole.encode(pcm) + whole.flush()


def test_nothing_is_flushed_where_nothing_was_said() -> None:
    encoder = OpusEncoder(24000)
    assert encoder.flush() == []
    encoder.encode(bytes(100))
    assert len(encoder.flush()) == 1
    assert encoder.flush() == []


def test_what_waits_for_its_packet_can_be_dropped() -> None:
    encoder = OpusEncoder(24000)
    encoder.encode(as_pcm(voice(24000, 0.019)))
    encoder.drop()
    assert encoder.flush() == []
    (packet,) = encoder.encode(bytes(2 * encoder.packet_samples))
    assert not np.any(samples_of(OpusDecoder(24000).decode(packet)))


def test_a_lost_packet_is_made_up_and_keeps_the_time() -> None:
    encoder, decoder = OpusEncoder(24000, OpusSettings(bitrate_bps=48_000)), OpusDecoder(24000)
    heard = b""
    packets = encoder.encode(as_pcm(voice(24000, 1.0)))
    for number, packet in enumerate(packets):
        heard += decoder.conceal() if number == 25 else decoder.decode(packet)
    heard += decoder.flush()
    assert decoder.concealed == 1
    assert len(heard) == 2 * 24000
    # What was made up goes on with the voice: neither a hole nor a click.
    hole = samples_of(heard)[12000:12480]
    before = samples_of(heard)[11500:11980]
    assert np.std(hole) > 0.4 * np.std(before)
    assert np.max(np.abs(np.diff(hole))) < 3 * np.max(np.abs(np.diff(before)))


def test_a_voice_that_stays_away_is_silence_and_comes_back() -> None:
    encoder, decoder = OpusEncoder(24000), OpusDecoder(24000)
    packets = encoder.encode(as_pcm(voice(24000, 0.5)))
    for packet in packets[:20]:
        decoder.decode(packet)
    lost = [samples_of(decoder.conceal()) for _ in range(10)]
    assert np.std(lost[4]) > 100
    assert not np.any(lost[6])
    assert {len(piece) for piece in lost} == {480}
    assert np.std(samples_of(decoder.decode(packets[21]))) > 100
    assert np.std(samples_of(decoder.conceal())) > 100


def test_before_the_first_packet_a_lost_one_is_silence() -> None:
    decoder = OpusDecoder(48000)
    assert decoder.conceal() == bytes(2 * 960)


@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60])
def test_what_is_made_up_lasts_as_long_as_the_packet_before(frame_ms: int) -> None:
    encoder = OpusEncoder(48000, OpusSettings(frame_ms=frame_ms))  # type: ignore[arg-type]
    decoder = OpusDecoder(48000)
    (packet, *_) = encoder.encode(as_pcm(voice(48000, 0.06)))
    length = len(decoder.decode(packet))
    assert length == 2 * 48 * frame_ms
    assert len(decoder.conceal()) == length


def test_several_frames_in_one_packet_are_made_up_together() -> None:
    """Codes 1, 2 and 3 of the first byte: two frames, alike or not, and a counted number."""
    one, two, three, _ = OpusEncoder(48000).encode(as_pcm(voice(48000, 0.08)))
    toc = one[0] & 0xFC
    counted = bytes((toc | 3, 0x80 | 3, len(one) - 1, len(two) - 1)) + one[1:] + two[1:] + three[1:]
    unlike = bytes((toc | 2, len(one) - 1)) + one[1:] + two[1:]
    for packet, frames in ((counted, 3), (unlike, 2)):
        decoder = OpusDecoder(48000)
        assert packet_samples(packet) == 960 * frames
        assert len(decoder.decode(packet)) == len(decoder.conceal()) == 2 * 960 * frames


def test_stereo_is_mixed_down() -> None:
    decoder = OpusDecoder(48000)
    (packet,) = OpusEncoder(48000).encode(bytes(2 * 960))
    stereo = bytes((packet[0] | 4,)) + packet[1:]
    assert len(decoder.decode(stereo)) == 2 * 960


@pytest.mark.parametrize("junk", [b"", bytes(MAX_PACKET_BYTES + 1), b"\x03", b"\x03\x00"])
def test_what_is_no_packet_is_refused_and_harms_nothing(junk: bytes) -> None:
    encoder, decoder, untouched = OpusEncoder(24000), OpusDecoder(24000), OpusDecoder(24000)
    first, second = encoder.encode(as_pcm(voice(24000, 0.04)))
    assert decoder.decode(first) == untouched.decode(first)
    with pytest.raises(CodecError, match=f"{len(junk)} bytes"):
        decoder.decode(junk)
    assert decoder.decode(second) == untouched.decode(second)


@given(packets=st.lists(st.binary(max_size=200), max_size=8))
def test_random_bytes_are_sound_or_refused(packets: list[bytes]) -> None:
    decoder = OpusDecoder(24000)
    for packet in packets:
        expected = packet_samples(packet)
        try:
            heard = decoder.decode(packet)
        except CodecError:
            continue
        assert 0 < expected <= CLOCK_HZ * 120 // 1000
        assert len(heard) // 2 <= expected // 2 + 72
        assert len(decoder.conceal()) % 2 == 0


def test_a_stream_in_two_stretches_has_no_seam() -> None:
    """After a flush the same encoder goes on: the next answer of a call."""
    encoder, decoder = OpusEncoder(24000), OpusDecoder(24000)
    pcm = as_pcm(voice(24000, 0.5))
    first = encoder.encode(pcm) + encoder.flush()
    second = encoder.encode(pcm) + encoder.flush()
    assert len(first) == len(second)
    heard = [len(decoder.decode(packet)) for packet in first + second]
    assert max(abs(a - b) for a, b in pairwise(heard[1:])) <= 2 * 24
