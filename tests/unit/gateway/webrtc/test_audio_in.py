"""Also the WebRTC half of case "one tone through every format"."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.g711 import encode_alaw, encode_ulaw
from duologue.codecs.opus import OpusEncoder
from duologue.gateway.webrtc.audio_in import FrameAudio, RtpAudio
from duologue.gateway.webrtc.offer import AudioOffer, Codec
from duologue.gateway.webrtc.rtp import RtpWriter
from tests.unit.codecs.tones import level_db, loudest_hz, tone

FRAMES = 50
RATE_HZ = 24_000


def packets(codec: Codec, pcm: bytes | None = None) -> list[bytes]:
    """A second of a tone, in packets of 20 ms."""
    writer = RtpWriter(111, ssrc=1, first=7)
    if codec == "opus":
        coded = OpusEncoder(24_000).encode(pcm or tone(24_000))
        return [writer.write(payload, 960 * n) for n, payload in enumerate(coded)]
    compress = encode_ulaw if codec == "pcmu" else encode_alaw
    wire = compress(pcm or tone(8_000))
    return [writer.write(wire[160 * n : 160 * n + 160], 160 * n) for n in range(FRAMES)]


def receiver(codec: Codec = "opus") -> RtpAudio:
    return RtpAudio(AudioOffer("0", codec, 111, "sendrecv"))


@pytest.mark.parametrize("codec", ["opus", "pcmu", "pcma"])
def test_c31_a_tone_keeps_its_pitch_length_and_level(codec: Codec) -> None:
    audio = receiver(codec)
    heard = b"".join(map(audio.receive, packets(codec)))
    assert loudest_hz(heard, RATE_HZ) == pytest.approx(1000, abs=5)
    assert level_db(heard, RATE_HZ) == pytest.approx(0, abs=1)
    assert len(heard) / 2 == pytest.approx(RATE_HZ, abs=RATE_HZ / 50)


@pytest.mark.parametrize("codec", ["opus", "pcmu"])
def test_lost_packets_cost_no_time(codec: Codec) -> None:
    audio, whole = receiver(codec), receiver(codec)
    sent = packets(codec)
    complete = b"".join(map(whole.receive, sent))
    heard = b"".join(audio.receive(p) for n, p in enumerate(sent) if n not in (10, 20, 21))
    assert audio.lost == 3
    assert len(heard) == len(complete)


def test_packets_out_of_order_sound_as_if_they_were_not() -> None:
    sent = packets("opus")
    swapped = list(sent)
    swapped[5], swapped[6], swapped[20], swapped[22] = sent[6], sent[5], sent[22], sent[20]
    audio, whole = receiver(), receiver()
    assert b"".join(map(audio.receive, swapped)) == b"".join(map(whole.receive, sent))


def test_silence_that_was_left_out_is_put_back() -> None:
    writer = RtpWriter(111, ssrc=1, first=7)
    coded = OpusEncoder(24_000).encode(tone(24_000))
    audio = receiver()
    heard = b"".join(audio.receive(writer.write(p, 960 * n)) for n, p in enumerate(coded[:5]))
    heard += audio.receive(writer.write(coded[5], 960 * 15))
    assert len(heard) / 2 == pytest.approx(RATE_HZ * 16 / 50, abs=80)


def test_what_cannot_be_decoded_is_silence_of_its_length() -> None:
    writer = RtpWriter(111, ssrc=1, first=7)
    coded = OpusEncoder(24_000).encode(tone(24_000, 0.1))
    audio = receiver()
    broken = bytes((coded[0][0] & 0xFC | 2, 0xFF, 0xFF))
    for number, payload in enumerate([coded[0], broken, coded[1]]):
        audio.receive(writer.write(payload, 960 * number))
    assert audio.undecodable == 1


@pytest.mark.parametrize("junk", [b"", b"\x80\xc8" + bytes(30), bytes(40)])
def test_what_is_no_packet_of_the_call_is_ignored(junk: bytes) -> None:
    audio = receiver()
    assert audio.receive(junk) == b""
    other = RtpWriter(0, ssrc=1, first=7).write(b"another payload type", 0)
    assert audio.receive(other) == b""


@pytest.mark.parametrize(("rate_hz", "channels"), [(48_000, 2), (48_000, 1), (8_000, 1)])
def test_c31_frames_of_a_library_keep_pitch_level_and_length(rate_hz: int, channels: int) -> None:
    audio = FrameAudio(rate_hz)
    step = rate_hz // 50
    mono = np.frombuffer(tone(rate_hz), "<i2")
    heard = b""
    for number in range(FRAMES):
        frame = np.repeat(mono[number * step : (number + 1) * step], channels)
        heard += audio.receive(frame.tobytes(), channels, number * step)
    assert loudest_hz(heard, RATE_HZ) == pytest.approx(1000, abs=5)
    assert level_db(heard, RATE_HZ) == pytest.approx(0, abs=1)
    assert len(heard) / 2 == pytest.approx(RATE_HZ, abs=100)


def test_a_frame_that_is_missing_is_silence() -> None:
    audio = FrameAudio(48_000)
    frame = tone(48_000, 0.02)
    heard = audio.receive(frame, 1, 0) + audio.receive(frame, 1, 960 * 3)
    assert len(heard) / 2 == pytest.approx(RATE_HZ * 4 / 50, abs=80)
