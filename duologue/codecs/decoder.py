"""From the bytes of a client to PCM at the engine's rate.

This module must not know messages: bytes arrive in order, cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.codecs.float_pcm import FloatReader
from duologue.codecs.g711 import decode_alaw, decode_ulaw
from duologue.codecs.resample import StreamResampler
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    OpusFormat,
    PcmaFormat,
    PcmuFormat,
    format_rate_hz,
    format_sample_bytes,
)


class InputDecoder:
    """Decodes one stream of a negotiated format.

    Concurrency:
        Belongs to one session; a change of format or rate needs a new one.
    """

    __slots__ = (
        "_expand",
        "_floats",
        "_passes",
        "_rate_hz",
        "_resampler",
        "_sample_bytes",
        "_wire_bytes",
        "audio_format",
        "dropped_bytes",
        "to_hz",
    )

    def __init__(self, audio_format: AudioFormat, to_hz: int) -> None:
        self.audio_format = audio_format
        self.to_hz = to_hz
        self.dropped_bytes = 0
        """Parts of samples that never met their other part."""

        self._floats = FloatReader() if isinstance(audio_format, FloatPcmFormat) else None
        self._expand = self._expansion(audio_format)
        self._resampler = StreamResampler(format_rate_hz(audio_format), to_hz)
        self._sample_bytes = format_sample_bytes(audio_format)
        self._rate_hz = format_rate_hz(audio_format)
        self._wire_bytes = 0
        self._passes = self._expand is None and self._rate_hz == to_hz
        """Whole samples of it are PCM at the right rate."""

    @property
    def wire_samples(self) -> int:
        """All that came in, in whole samples as they were on the wire."""
        return self._wire_bytes // self._sample_bytes

    def seconds(self, wire: bytes) -> float:
        """Return how long some audio lasts."""
        return len(wire) / self._sample_bytes / self._rate_hz

    def decode(self, wire: bytes) -> bytes:
        """Return the PCM that is complete now; half a sample waits for its other half."""
        size = len(wire)
        self._wire_bytes = so_far = self._wire_bytes + size
        if self._passes and not (so_far | size) & 1:  # whole samples, before it and in it
            return wire
        return self._resampler.process(wire if self._expand is None else self._expand(wire))

    def drop_dangling(self) -> int:
        """Forget part of a sample at the end of a turn, so that it cannot shift the next one.

        Returns:
            How many bytes were dropped now. ``dropped_bytes`` has the sum.
        """
        dropped = self._resampler.drop_half_sample()
        if self._floats is not None:
            dropped += self._floats.drop_rest()
        self._wire_bytes -= dropped  # nobody will ever hear them, or count them
        self.dropped_bytes += dropped
        return dropped

    def flush(self) -> bytes:
        """Return the PCM that the rate converter still holds (about 3 ms), and start anew."""
        self.drop_dangling()
        return self._resampler.flush()

    def _expansion(self, audio_format: AudioFormat) -> Callable[[bytes], bytes] | None:
        if self._floats is not None:
            return self._floats.read
        return _EXPAND.get(type(audio_format))


_EXPAND: dict[type, Callable[[bytes], bytes]] = {
    PcmuFormat: decode_ulaw,
    PcmaFormat: decode_alaw,
}


def input_decoder(audio_format: AudioFormat, to_hz: int) -> InputDecoder:
    """Return a decoder for a format."""
    if isinstance(audio_format, OpusFormat):
        from duologue.codecs.opus_stream import OpusInput

        return OpusInput(audio_format, to_hz)
    return InputDecoder(audio_format, to_hz)
