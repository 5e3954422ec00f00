"""Audio chunks of any rate and size as one run of 16 kHz samples, with a place on both clocks.

What speech models share at their entrance. This module must not know models.
"""

from __future__ import annotations

from duologue.codecs import StreamResampler
from duologue.core.audio import SAMPLE_BYTES, silence
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk

SPEECH_RATE_HZ = 16_000

LOWEST_RATE_HZ, HIGHEST_RATE_HZ, RATE_STEP_HZ = 8_000, 96_000, 25
"""Rates that are converted. Odd ones would need filters of many megabytes."""

LONGEST_GAP_S = 1
"""Missing audio up to this length is heard as silence; a longer gap breaks the stream."""


class AudioBreak(EngineError):
    """A chunk does not continue its stream: it overlaps, leaves a long gap, or changes the rate."""

    default_code = "audio_break"


class SpeechStream:
    """Joins the chunks of one job. The first one sets the rate and where the clock begins."""

    def __init__(self) -> None:
        self._resampler: StreamResampler | None = None
        self._rate_hz = SPEECH_RATE_HZ
        self._origin = 0
        self._next = 0

    def append(self, chunk: AudioChunk) -> bytes:
        """Take the next chunk; returns the 16 kHz PCM that can be made so far.

        Raises:
            AudioBreak: It does not continue what came before. Nothing was taken.
            EngineError: It is no audio that can be read.
        """
        if len(chunk.pcm) % SAMPLE_BYTES:
            raise EngineError(f"an audio chunk of {len(chunk.pcm)} bytes ends within a sample")
        if self._resampler is None:
            self._resampler = _resampler(chunk.rate_hz)
            self._rate_hz = chunk.rate_hz
            self._origin = self._next = chunk.start_sample
        gap = chunk.start_sample - self._next
        if chunk.rate_hz != self._rate_hz or not 0 <= gap <= LONGEST_GAP_S * self._rate_hz:
            raise AudioBreak(
                f"audio at sample {chunk.start_sample} ({chunk.rate_hz} Hz) does not continue a "
                f"stream at sample {self._next} ({self._rate_hz} Hz): gaps may last "
                f"{LONGEST_GAP_S} s. Open a new request for it."
            )
        self._next = chunk.start_sample + len(chunk.pcm) // SAMPLE_BYTES
        return self._resampler.process(silence(gap) + chunk.pcm)

    def finish(self) -> bytes:
        """Return the tail that the rate conversion held back. Nothing may follow."""
        return b"" if self._resampler is None else self._resampler.flush()

    def position(self, clock_sample: int) -> int:
        """Index in the 16 kHz run of a sample on the clock of the chunks."""
        elapsed = clock_sample - self._origin
        return (elapsed * SPEECH_RATE_HZ + self._rate_hz // 2) // self._rate_hz

    def clock_sample(self, position: int) -> int:
        """Sample on the clock of the chunks of an index in the 16 kHz run."""
        elapsed = (position * self._rate_hz + SPEECH_RATE_HZ // 2) // SPEECH_RATE_HZ
        return self._origin + elapsed


def _resampler(rate_hz: int) -> StreamResampler:
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ or rate_hz % RATE_STEP_HZ:
        raise EngineError(
            f"audio at {rate_hz} Hz cannot be read: rates go from {LOWEST_RATE_HZ} to "
            f"{HIGHEST_RATE_HZ} Hz in steps of {RATE_STEP_HZ}"
        )
    return StreamResampler(rate_hz, SPEECH_RATE_HZ)
