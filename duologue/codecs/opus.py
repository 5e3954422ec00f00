"""Opus, packet by packet: one mono stream of signed 16-bit PCM to and from bare Opus packets.

The codec is libopus, as PyAV's wheels bring it. Only servers have it, so the package does not
import this module by itself. It must not know containers, RTP or how packets travel.

Source:
    RFC 6716, section 3 (packets); RFC 7845, section 5.1 (pre-skip).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from av import AudioFrame, CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from av.error import FFmpegError

from duologue.codecs.opus_packets import CLOCK_HZ as CLOCK_HZ
from duologue.codecs.opus_packets import packet_samples as packet_samples
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.errors import CodecError

MAX_PACKET_BYTES = 120 * 510_000 // 8 // 1000
"""120 ms at the highest bit rate: no Opus packet is longer."""

MAX_CONCEALED_MS = 100
"""Lost packets in a row that are made up; what lies further back says nothing about now."""

OpusRate: TypeAlias = Literal[8000, 12000, 16000, 24000, 48000]
"""Rates that the encoder takes."""

Application: TypeAlias = Literal["voip", "audio", "lowdelay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpusSettings:
    """How a stream is encoded.

    Args:
        application: What libopus optimises for. ``voip`` understands speech and survives low bit
            rates; ``audio`` costs less than half of its CPU at 24 kbit/s and more; ``lowdelay``
            looks ahead 2.5 ms instead of 6.5.
        complexity: 0 to 10; above 5 the gain is small and the cost is not.
        frame_ms: What one packet holds.
    """

    bitrate_bps: int = 32_000
    complexity: int = 5
    frame_ms: Literal[10, 20, 40, 60] = 20
    application: Application = "audio"


DEFAULTS = OpusSettings()


class OpusEncoder:
    """Encodes one stream; every packet holds ``frame_ms``.

    Concurrency:
        Belongs to one stream. ``encode`` costs 0.1 to 0.4 ms a packet, most of it without the
        interpreter lock, so threads may each encode a stream of their own.
    """

    def __init__(self, rate_hz: OpusRate, settings: OpusSettings = DEFAULTS) -> None:
        codec = CodecContext.create("libopus", "w")
        assert isinstance(codec, AudioCodecContext)
        codec.sample_rate = rate_hz
        codec.layout = "mono"
        codec.format = "s16"
        codec.bit_rate = settings.bitrate_bps
        codec.options = {
            "application": settings.application,
            "compression_level": str(settings.complexity),
            "frame_duration": str(settings.frame_ms),
        }
        codec.open()
        self.rate_hz = rate_hz
        self.packet_samples = ms_to_samples(settings.frame_ms, rate_hz)
        self.pre_skip = int.from_bytes((codec.extradata or b"")[10:12], "little")
        """What the decoder drops at the beginning, in samples of 48 kHz: the look-ahead."""
        self._codec = codec
        self._packet_bytes = self.packet_samples * SAMPLE_BYTES
        self._waiting = bytearray()
        self._place = 0
        self._in_speech = False

    def encode(self, pcm: bytes) -> list[bytes]:
        """Return the packets that are complete now; the rest waits for more."""
        waiting = self._waiting
        waiting += pcm
        self._in_speech = self._in_speech or bool(pcm)
        packets = []
        while len(waiting) >= self._packet_bytes:
            packets.append(self._encode_one(bytes(waiting[: self._packet_bytes])))
            del waiting[: self._packet_bytes]
        return packets

    def flush(self) -> list[bytes]:
        """Return the end of a stretch of speech, filled up with silence, look-ahead included."""
        if not self._in_speech:
            return []
        lookahead = self.pre_skip * self.rate_hz // CLOCK_HZ * SAMPLE_BYTES
        due = len(self._waiting) + lookahead
        packets = self.encode(bytes(-due % self._packet_bytes + lookahead))
        self._in_speech = False
        return packets

    def drop(self) -> None:
        """Forget what waits for its packet to be full: it is not to be heard any more."""
        self._waiting.clear()
        self._in_speech = False

    def _encode_one(self, pcm: bytes) -> bytes:
        frame = AudioFrame("s16", "mono", self.packet_samples)
        frame.sample_rate = self.rate_hz
        frame.pts = self._place
        frame.planes[0].update(pcm)
        self._place += self.packet_samples
        (packet,) = self._codec.encode(frame)
        return bytes(packet)


class OpusDecoder:
    """Decodes one stream, in which packets may be missing.

    Packets of any duration and of one or two channels will do; stereo is mixed down.

    Args:
        pre_skip: Samples of 48 kHz to drop at the beginning. RTP has none to tell.

    Concurrency:
        As ``OpusEncoder``; ``decode`` costs a tenth of a millisecond.
    """

    def __init__(self, rate_hz: int, pre_skip: int = 0) -> None:
        codec = CodecContext.create("libopus", "r")
        assert isinstance(codec, AudioCodecContext)
        codec.layout = "mono"
        codec.format = "s16"
        codec.open()
        self.rate_hz = rate_hz
        self.concealed = 0
        """Packets that were made up."""
        self._codec = codec
        self._resampler = StreamResampler(CLOCK_HZ, rate_hz)
        self._skip_bytes = pre_skip * SAMPLE_BYTES
        self._last = b""
        self._lost = 0

    def decode(self, packet: bytes) -> bytes:
        """Return the PCM of the packet that is next.

        Raises:
            CodecError: That is no Opus packet; nothing has changed.
        """
        # Two bytes or fewer are how libopus is told to make something up: see ``conceal``.
        if not packet or len(packet) > MAX_PACKET_BYTES:
            raise CodecError(f"{len(packet)} bytes are no Opus packet, 1 to {MAX_PACKET_BYTES} are")
        pcm = self._decode(packet)
        self._last = packet
        self._lost = 0
        return self._resampler.process(pcm)

    def conceal(self) -> bytes:
        """Return PCM in place of a packet that was lost, as long as the one before it.

        libopus goes on with the voice. Before the first packet, and after ``MAX_CONCEALED_MS``, it
        is silence.
        """
        self.concealed += 1
        duration = packet_samples(self._last) or CLOCK_HZ // 50
        self._lost += duration
        if not self._last or self._lost * 1000 > MAX_CONCEALED_MS * CLOCK_HZ:
            return self._resampler.process(bytes(duration * SAMPLE_BYTES))
        return self._resampler.process(self._decode(_without_content(self._last)))

    def flush(self) -> bytes:
        """Return the PCM that the rate converter still holds (about 3 ms)."""
        return self._resampler.flush()

    def _decode(self, packet: bytes) -> bytes:
        try:
            frames = self._codec.decode(Packet(packet))
        except FFmpegError as exc:
            raise CodecError(f"{len(packet)} bytes are no Opus packet") from exc
        pcm = b"".join(bytes(frame.planes[0])[: frame.samples * SAMPLE_BYTES] for frame in frames)
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(pcm))
            self._skip_bytes -= skipped
            return pcm[skipped:]
        return pcm


def _without_content(packet: bytes) -> bytes:
    """Return a packet with the frames of another one, all of them empty: libopus conceals them."""
    toc, code = packet[0], packet[0] & 3
    if code < 3:
        # Two frames of different sizes (code 2) are two of the same size, which is none.
        return bytes((toc & 0xFC | min(code, 1),))
    return bytes((toc, packet[1] & 63))
