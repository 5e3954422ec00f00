"""Opus on a connection that asked for it: one answer out, one microphone in, packet by packet.

Only servers have the codec, so this module is imported where a session first needs it. It must not
know messages or sessions.
"""

from __future__ import annotations

from duologue.codecs.decoder import InputDecoder
from duologue.codecs.encoder import OutputEncoder
from duologue.codecs.opus import OpusDecoder, OpusEncoder, OpusSettings
from duologue.codecs.opus_packets import CLOCK_HZ, duration_samples, join, split
from duologue.codecs.resample import StreamResampler
from duologue.core.errors import CodecError
from duologue.protocol.audio_formats import OpusFormat

SETTINGS = OpusSettings(bitrate_bps=20_000, complexity=2, frame_ms=40, application="audio")
"""About 2 ms of CPU for each second of speech, on the loop: a delta of 200 ms takes half of one.
``voip`` costs up to five times as much; longer packets save little. See bench_encodings.py."""


class OpusOutput(OutputEncoder):
    """Encodes one answer; after a flush, the next."""

    def __init__(self, from_hz: int, audio_format: OpusFormat) -> None:
        self.from_hz = from_hz
        self.audio_format = audio_format
        self.passes = False
        self._resampler = StreamResampler(from_hz, audio_format.rate)
        self._encoder = OpusEncoder(audio_format.rate, SETTINGS)

    def encode(self, pcm: bytes) -> bytes:
        """Return the packets that are complete now."""
        return join(self._encoder.encode(self._resampler.process(pcm)))

    def flush(self) -> bytes:
        """Return the last packets, filled up with silence, look-ahead included."""
        packets = self._encoder.encode(self._resampler.flush())
        return join([*packets, *self._encoder.flush()])


class OpusInput(InputDecoder):
    """Decodes one microphone.

    A packet that cannot be decoded is made up from the one before, as if it had been lost.
    """

    def __init__(self, audio_format: OpusFormat, to_hz: int) -> None:
        self.audio_format = audio_format
        self.to_hz = to_hz
        self.dropped_bytes = 0
        self._rate_hz = audio_format.rate
        self._clock_samples = 0
        self._decoder = OpusDecoder(to_hz)

    @property
    def wire_samples(self) -> int:
        """All that came in, at the rate of the format."""
        return self._clock_samples * self._rate_hz // CLOCK_HZ

    def seconds(self, wire: bytes) -> float:
        """Return how long some audio lasts.

        Raises:
            CodecError: That is no run of packets.
        """
        return duration_samples(split(wire)) / CLOCK_HZ

    def decode(self, wire: bytes) -> bytes:
        """Return the PCM of whole packets.

        Raises:
            CodecError: That is no run of packets; nothing was decoded.
        """
        packets = split(wire)
        self._clock_samples += duration_samples(packets)
        return b"".join(map(self._decode_one, packets))

    def drop_dangling(self) -> int:
        """Nothing is ever half: packets are whole."""
        return 0

    def flush(self) -> bytes:
        """Return the PCM that the rate converter still holds (about 3 ms)."""
        return self._decoder.flush()

    def _decode_one(self, packet: bytes) -> bytes:
        try:
            return self._decoder.decode(packet)
        except CodecError:
            self.dropped_bytes += len(packet)
            return self._decoder.conceal()
