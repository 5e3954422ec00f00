from __future__ import annotations

from collections.abc import Callable

import pytest

from duologue.codecs.g711 import decode_alaw, decode_ulaw
from duologue.codecs.opus import OpusDecoder
from duologue.gateway.webrtc.audio_out import FRAME_BYTES, SETTLING_FRAMES, FrameEncoder
from duologue.gateway.webrtc.offer import Codec
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.unit.codecs.tones import level_db, loudest_hz, tone


def encoder(codec: Codec = "opus") -> FrameEncoder:
    return FrameEncoder(codec, WebRtcSettings())


def decoder(codec: Codec) -> tuple[Callable[[bytes], bytes], int]:
    if codec == "opus":
        return OpusDecoder(24_000).decode, 24_000
    return (decode_ulaw if codec == "pcmu" else decode_alaw), 8_000


@pytest.mark.parametrize("codec", ["opus", "pcmu", "pcma"])
def test_c31_a_tone_keeps_its_pitch_level_and_time(codec: Codec) -> None:
    made = encoder(codec)
    decode, rate_hz = decoder(codec)
    pcm = tone(24_000)
    frames = [pcm[start : start + FRAME_BYTES] for start in range(0, len(pcm), FRAME_BYTES)]
    heard = b"".join(decode(made.encode(frame)) for frame in frames)
    assert loudest_hz(heard, rate_hz) == pytest.approx(1000, abs=5)
    assert level_db(heard, rate_hz) == pytest.approx(0, abs=1)
    assert len(heard) / 2 == pytest.approx(rate_hz, abs=rate_hz / 300)


@pytest.mark.parametrize(("codec", "step"), [("opus", 960), ("pcmu", 160), ("pcma", 160)])
def test_every_frame_is_one_packet_of_the_same_length(codec: Codec, step: int) -> None:
    made = encoder(codec)
    assert made.step == step
    for pcm in (None, tone(24_000, 0.02), None):
        payload = made.encode(pcm)
        assert len(payload) == 160 if codec != "opus" else payload


def test_a_long_silence_is_one_packet_again_and_again_until_somebody_speaks() -> None:
    made, hear = encoder(), OpusDecoder(24_000)
    made.encode(tone(24_000, 0.02))
    silent = [made.encode(None) for _ in range(SETTLING_FRAMES + 50)]
    assert len({id(payload) for payload in silent[SETTLING_FRAMES:]}) == 1
    for payload in silent:
        pcm = hear.decode(payload)
    assert not any(pcm)
    speech = b"".join(hear.decode(made.encode(tone(24_000, 0.02))) for _ in range(50))
    assert loudest_hz(speech, 24_000) == pytest.approx(1000, abs=5)
