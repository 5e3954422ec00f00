"""From 20 ms of PCM to the payload of one packet.

This module must not know what is said, or when it is due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from duologue.codecs.g711 import encode_alaw, encode_ulaw
from duologue.codecs.opus import OpusEncoder, OpusSettings
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES
from duologue.gateway.webrtc.offer import Codec
from duologue.gateway.webrtc.settings import WebRtcSettings

AUDIO_OUT_HZ: Literal[24_000] = 24_000
FRAME_MS = 20
FRAME_BYTES = AUDIO_OUT_HZ * FRAME_MS // 1000 * SAMPLE_BYTES

SETTLING_FRAMES = 10
"""Silent frames after speech until the encoder has nothing left to say. From then on the same
packet is sent again and again, which costs nothing: a caller who talks is most of a call."""

_SILENCE = bytes(FRAME_BYTES)


class FrameEncoder:
    """Encodes the audio of one call; each frame is one packet.

    Concurrency:
        Belongs to one call. A frame of speech in Opus costs 0.12 ms, one of a longer silence a
        microsecond.
    """

    def __init__(self, codec: Codec, settings: WebRtcSettings) -> None:
        self.step = 960 if codec == "opus" else 160
        """By how much each packet moves the RTP clock."""
        self._encode = _opus(settings) if codec == "opus" else _g711(codec)
        self._silent_frames = 0
        self._silent_payload = b""

    def encode(self, pcm: bytes | None) -> bytes:
        """Return the payload of a frame; ``None`` is silence."""
        if pcm is not None:
            self._silent_frames = 0
            return self._encode(pcm)
        if self._silent_frames >= SETTLING_FRAMES:
            return self._silent_payload
        self._silent_frames += 1
        self._silent_payload = self._encode(_SILENCE)
        return self._silent_payload


def _opus(settings: WebRtcSettings) -> Callable[[bytes], bytes]:
    encoder = OpusEncoder(
        AUDIO_OUT_HZ,
        OpusSettings(bitrate_bps=settings.bitrate_bps, complexity=settings.complexity),
    )

    def encode(pcm: bytes) -> bytes:
        (packet,) = encoder.encode(pcm)
        return packet

    return encode


def _g711(codec: Codec) -> Callable[[bytes], bytes]:
    compress = encode_ulaw if codec == "pcmu" else encode_alaw
    resampler = StreamResampler(AUDIO_OUT_HZ, 8_000)
    waiting = bytearray(160 * SAMPLE_BYTES)

    def encode(pcm: bytes) -> bytes:
        # The rate converter keeps back 3 ms: one frame of silence ahead makes each packet full.
        waiting.extend(resampler.process(pcm))
        frame = bytes(waiting[: 160 * SAMPLE_BYTES])
        del waiting[: 160 * SAMPLE_BYTES]
        return compress(frame)

    return encode
