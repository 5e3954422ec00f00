"""From the bytes of a client to PCM at the engine's rate.

This module must not know messages: bytes arrive in order, cut anywhere.
"""

from __future__ import annotations

from duologue.codecs.g711 import decode_alaw, decode_ulaw
from duologue.codecs.resample import StreamResampler
from duologue.protocol.audio_formats import (
    AudioFormat,
    PcmFormat,
    PcmuFormat,
    format_rate_hz,
)


class InputDecoder:
    """Decodes one stream of a negotiated format.

    Concurrency:
        Belongs to one session; a change of format or rate needs a new one.
    """

    def __init__(self, audio_format: AudioFormat, to_hz: int) -> None:
        self.audio_format = audio_format
        self.to_hz = to_hz
        self.dropped_bytes = 0
        """Halves of samples that never met their other half."""

        self._is_pcm = isinstance(audio_format, PcmFormat)
        self._expand = decode_ulaw if isinstance(audio_format, PcmuFormat) else decode_alaw
        self._resampler = StreamResampler(format_rate_hz(audio_format), to_hz)

    def decode(self, wire: bytes) -> bytes:
        """Return the PCM that is complete now; half a sample waits for its other half."""
        return self._resampler.process(wire if self._is_pcm else self._expand(wire))

    def drop_dangling(self) -> int:
        """Forget half a sample at the end of a turn, so that it cannot shift the next one.

        Returns:
            How many bytes were dropped now: 0 or 1. ``dropped_bytes`` has the sum.
        """
        dropped = self._resampler.drop_half_sample()
        self.dropped_bytes += dropped
        return dropped

    def flush(self) -> bytes:
        """Return the PCM that the rate converter still holds (about 3 ms), and start anew."""
        self.drop_dangling()
        return self._resampler.flush()
