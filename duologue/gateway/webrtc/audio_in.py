"""From a peer's audio to PCM at one rate, without holes.

Two ways in: RTP packets, for a library that hands them through, and decoded frames, for one that
decodes by itself. Lost packets are concealed, and silence that a peer left out is put back, so
that the session's sample clock goes on. This module must not know either library.
"""

from __future__ import annotations

import numpy as np

from duologue.codecs.g711 import decode_alaw, decode_ulaw
from duologue.codecs.opus import OpusDecoder, packet_samples
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import CodecError
from duologue.gateway.webrtc.offer import AudioOffer, Codec
from duologue.gateway.webrtc.peer import AUDIO_IN_HZ
from duologue.gateway.webrtc.rtp import ReorderBuffer, RtpPacket, Timeline, read_rtp

CLOCK_HZ: dict[Codec, int] = {"opus": 48_000, "pcmu": 8_000, "pcma": 8_000}
"""The RTP clock of each codec."""


class RtpAudio:
    """Decodes the RTP packets of one peer.

    Concurrency:
        Belongs to the thread that calls it; a packet costs about 0.1 ms.
    """

    def __init__(self, audio: AudioOffer) -> None:
        self.undecodable = 0
        self._payload_type = audio.payload_type
        self._clock_hz = CLOCK_HZ[audio.codec]
        self._order = ReorderBuffer()
        self._timeline = Timeline(self._clock_hz)
        self._decoder = OpusPackets() if audio.codec == "opus" else G711Packets(audio.codec)

    @property
    def lost(self) -> int:
        """Packets that never came."""
        return self._order.lost

    def receive(self, datagram: bytes) -> bytes:
        """Return the PCM that is complete with this packet, often of more than one or of none."""
        packet = read_rtp(datagram)
        if packet is None or packet.payload_type != self._payload_type:
            return b""
        return b"".join(map(self._decode, self._order.put(packet)))

    def _decode(self, packet: RtpPacket | None) -> bytes:
        decoder = self._decoder
        if packet is None:
            self._timeline.skip(decoder.last_samples)
            return decoder.conceal()
        samples = decoder.samples(packet.payload)
        gap = self._timeline.gap_before(packet.timestamp, samples)
        silence = bytes(gap * AUDIO_IN_HZ // self._clock_hz * SAMPLE_BYTES)
        try:
            return silence + decoder.decode(packet.payload)
        except CodecError:
            self.undecodable += 1
            return silence + bytes(samples * AUDIO_IN_HZ // self._clock_hz * SAMPLE_BYTES)


class OpusPackets:
    """Payloads in Opus."""

    def __init__(self) -> None:
        self.last_samples = 960
        self._decoder = OpusDecoder(AUDIO_IN_HZ)

    def samples(self, payload: bytes) -> int:
        """How long a payload lasts, by the RTP clock."""
        return packet_samples(payload)

    def decode(self, payload: bytes) -> bytes:
        """Return its PCM; raises ``CodecError``."""
        pcm = self._decoder.decode(payload)
        self.last_samples = packet_samples(payload)
        return pcm

    def conceal(self) -> bytes:
        """Return PCM in place of a lost one."""
        return self._decoder.conceal()


class G711Packets:
    """Payloads in G.711: a lost one is silence."""

    def __init__(self, codec: Codec) -> None:
        self.last_samples = 160
        self._expand = decode_ulaw if codec == "pcmu" else decode_alaw
        self._resampler = StreamResampler(8_000, AUDIO_IN_HZ)

    def samples(self, payload: bytes) -> int:
        """How long a payload lasts, by the RTP clock."""
        return len(payload)

    def decode(self, payload: bytes) -> bytes:
        """Return its PCM."""
        self.last_samples = len(payload)
        return self._resampler.process(self._expand(payload))

    def conceal(self) -> bytes:
        """Return PCM in place of a lost one."""
        return self._resampler.process(bytes(self.last_samples * SAMPLE_BYTES))


class FrameAudio:
    """Takes frames that a library has decoded.

    Args:
        rate_hz: Of the frames; their positions count it, too.
    """

    def __init__(self, rate_hz: int) -> None:
        self._timeline = Timeline(rate_hz)
        self._resampler = StreamResampler(rate_hz, AUDIO_IN_HZ)

    def receive(self, interleaved: bytes, channels: int, position: int) -> bytes:
        """Return the PCM of a frame, behind the silence that is missing before it."""
        samples = np.frombuffer(interleaved, "<i2")
        if channels == 2:
            pairs = samples.reshape(-1, 2).astype(np.int32)
            samples = ((pairs[:, 0] + pairs[:, 1]) >> 1).astype("<i2")
        gap = self._timeline.gap_before(position & 0xFFFFFFFF, len(samples))
        return self._resampler.process(bytes(gap * SAMPLE_BYTES) + samples.tobytes())
