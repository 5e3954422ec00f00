"""From PCM at the engine's rate to the bytes of a client.

This module must not know messages or pacing.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.codecs.float_pcm import encode_float
from duologue.codecs.g711 import encode_alaw, encode_ulaw
from duologue.codecs.resample import StreamResampler
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    OpusFormat,
    PcmaFormat,
    PcmuFormat,
    format_rate_hz,
)

_COMPRESS: dict[type, Callable[[bytes], bytes]] = {
    PcmuFormat: encode_ulaw,
    PcmaFormat: encode_alaw,
    FloatPcmFormat: encode_float,
}


class OutputEncoder:
    """Encodes one stretch of speech after the other into a negotiated format.

    Concurrency:
        Belongs to one response lane; a change of format needs a new one.
    """

    __slots__ = (
        "_compress",
        "_resampler",
        "audio_format",
        "from_hz",
        "passes",
    )

    def __init__(self, from_hz: int, audio_format: AudioFormat) -> None:
        self.from_hz = from_hz
        self.audio_format = audio_format
        self._compress = _COMPRESS.get(type(audio_format))
        self._resampler = StreamResampler(from_hz, format_rate_hz(audio_format))
        self.passes = self._compress is None and from_hz == format_rate_hz(audio_format)
        """The wire has what the engine makes: nothing is to be encoded."""

    def encode(self, pcm: bytes) -> bytes:
        """Return the wire bytes that are complete now."""
        if self.passes:
            return pcm
        pcm = self._resampler.process(pcm)
        return pcm if self._compress is None else self._compress(pcm)

    def flush(self) -> bytes:
        """Return the last wire bytes (about 3 ms) at the end of speech, and start anew.

        After an interruption, call it and throw the bytes away.
        """
        pcm = self._resampler.flush()
        return pcm if self._compress is None else self._compress(pcm)


def output_encoder(from_hz: int, audio_format: AudioFormat) -> OutputEncoder:
    """Return an encoder for a format."""
    if isinstance(audio_format, OpusFormat):
        from duologue.codecs.opus_stream import OpusOutput

        return OpusOutput(from_hz, audio_format)
    return OutputEncoder(from_hz, audio_format)
