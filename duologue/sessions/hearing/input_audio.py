"""The input audio buffer: the microphone on the session's sample clock, until it is committed.

Wire bytes of any negotiated format become PCM at one rate here, statefully, so that a format
change in mid-stream or a sample split between two messages does no harm. This module must not
know who listens to the audio.
"""

from __future__ import annotations

from duologue.codecs.decoder import input_decoder
from duologue.core.audio import SAMPLE_BYTES, AudioFrame, ms_to_samples, samples_to_ms
from duologue.core.errors import CodecError, LimitExceeded
from duologue.protocol.audio_formats import (
    AudioFormat,
    OpusFormat,
    format_rate_hz,
    format_sample_bytes,
)
from duologue.protocol.errors import ErrorCode, over_limit, refused
from duologue.protocol.limits import MAX_OPUS_APPEND_BYTES, MAX_OPUS_APPEND_MS


class InputAudio:
    """Uncommitted audio, bounded.

    Args:
        rate_hz: Rate of the session's sample clock.
        capacity_ms: How much may wait for a commit; what does not fit is refused whole.
        retain: Keep audio for a commit. Not where the model decides about turns by itself.
    """

    __slots__ = (
        "_decoder",
        "_earlier_samples",
        "_format",
        "_judges_room",
        "_pcm",
        "_read_from",
        "_seconds_per_byte",
        "_start_sample",
        "capacity_bytes",
        "dropped_bytes",
        "next_sample",
        "rate_hz",
        "retain",
    )

    def __init__(
        self, audio_format: AudioFormat, rate_hz: int, capacity_ms: int, *, retain: bool = True
    ) -> None:
        self.rate_hz = rate_hz
        self.retain = retain
        self.next_sample = 0
        self.dropped_bytes = 0
        """Bytes of split samples that were never completed."""
        self.capacity_bytes = ms_to_samples(capacity_ms, rate_hz) * SAMPLE_BYTES
        self._start_sample = 0
        self._pcm = bytearray()
        self._earlier_samples = 0
        self._read_as(audio_format)

    def _read_as(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._decoder = input_decoder(audio_format, self.rate_hz)
        self._read_from = self.next_sample
        self._seconds_per_byte: float | None = None
        """``None``: the bytes do not say how long they last."""
        if not isinstance(audio_format, OpusFormat):
            byte_rate = format_sample_bytes(audio_format) * format_rate_hz(audio_format)
            self._seconds_per_byte = 1 / byte_rate
        # A resampler cannot be rewound, so room is judged before decoding.
        self._judges_room = self.retain or self._seconds_per_byte is None

    @property
    def start_sample(self) -> int:
        """Where the uncommitted audio begins."""
        return self._start_sample if self.retain else self.next_sample

    @property
    def held_ms(self) -> int:
        """Length of the uncommitted audio."""
        return samples_to_ms(len(self._pcm) // SAMPLE_BYTES, self.rate_hz)

    @property
    def held_bytes(self) -> int:
        """Size of the uncommitted audio."""
        return len(self._pcm)

    @property
    def pending_samples(self) -> int:
        """What came in and is not decoded yet: the resampler keeps back about 3 ms."""
        due = self._decoder.wire_samples * self.rate_hz // format_rate_hz(self._format)
        return due - (self.next_sample - self._read_from)

    @property
    def wire_samples(self) -> int:
        """All that came in, in whole samples as they were on the wire."""
        return self._earlier_samples + self._decoder.wire_samples

    def set_format(self, audio_format: AudioFormat) -> None:
        """Read what comes from now on in another format."""
        if audio_format != self._format:
            self.end_utterance()
            self._earlier_samples = self.wire_samples
            self._read_as(audio_format)

    def check_room(self, wire: bytes) -> None:
        """Judge whether some audio can be taken in, and would fit.

        Raises:
            LimitExceeded: It would not.
            ProtocolError: It cannot be decoded.
        """
        per_byte = self._seconds_per_byte
        seconds = self._packet_seconds(wire) if per_byte is None else len(wire) * per_byte
        if not self.retain:
            return
        room = (ms_to_samples(seconds * 1000, self.rate_hz) + 1) * SAMPLE_BYTES
        if len(self._pcm) + room > self.capacity_bytes:
            limit_ms = samples_to_ms(self.capacity_bytes // SAMPLE_BYTES, self.rate_hz)
            raise LimitExceeded(
                f"the buffer holds {self.held_ms} ms of audio and {round(seconds * 1000)} ms "
                f"more do not fit: the limit is {limit_ms} ms. Commit or clear it first.",
                code="input_audio_buffer_full",
                param="audio",
            )

    def append(self, wire: bytes) -> AudioFrame | None:
        """Take audio in the negotiated format; returns it as a frame, if it makes a sample.

        Raises:
            LimitExceeded: It does not fit; the buffer is as before.
            ProtocolError: It cannot be decoded; the buffer is as before.
        """
        if self._judges_room:
            self.check_room(wire)
        pcm = self._decoder.decode(wire)
        if not pcm:
            return None
        start_sample = self.next_sample
        self.next_sample = start_sample + len(pcm) // SAMPLE_BYTES
        if self.retain:
            self._pcm += pcm
        return AudioFrame(pcm, self.rate_hz, start_sample)

    def read(self, start_sample: int, end_sample: int | None = None) -> AudioFrame:
        """Return buffered audio from ``start_sample`` on, as far as it is still there."""
        held_from = self.start_sample
        start = max(start_sample, held_from)
        end = self.next_sample if end_sample is None else min(end_sample, self.next_sample)
        offset = (start - held_from) * SAMPLE_BYTES
        size = max(0, end - start) * SAMPLE_BYTES
        return AudioFrame(bytes(self._pcm[offset : offset + size]), self.rate_hz, start)

    def drop_before(self, sample: int) -> None:
        """Forget audio before ``sample``: it was committed, or is silence nobody will ask for."""
        sample = min(sample, self.next_sample)
        if sample > self._start_sample:
            del self._pcm[: (sample - self._start_sample) * SAMPLE_BYTES]
            self._start_sample = sample

    def end_utterance(self) -> None:
        """Forget half a sample, so that it cannot shift what comes next."""
        self.dropped_bytes += self._decoder.drop_dangling()

    def _packet_seconds(self, wire: bytes) -> float:
        if len(wire) > MAX_OPUS_APPEND_BYTES:
            raise over_limit("audio", len(wire), MAX_OPUS_APPEND_BYTES, "audio", "bytes")
        try:
            seconds = self._decoder.seconds(wire)
        except CodecError as exc:
            raise refused(f"audio: {exc.message}", "audio", ErrorCode.UNDECODABLE_AUDIO) from None
        if seconds * 1000 > MAX_OPUS_APPEND_MS:
            raise over_limit("audio", round(seconds * 1000), MAX_OPUS_APPEND_MS, "audio", "ms")
        return seconds
