"""Audio inside the process: signed 16-bit mono PCM with its place on a sample clock.

Media time is always a sample index; milliseconds are derived from it at the edges. This module
must not know wire encodings (``codecs``) or who speaks.
"""

from __future__ import annotations

import msgspec

SAMPLE_BYTES = 2
"""One sample of signed 16-bit little-endian mono PCM."""


class AudioFrame(msgspec.Struct, frozen=True, gc=False):
    """A run of samples with its place on the stream's sample clock.

    A struct, not a dataclass: one is made for every message, at a fifth of the cost.

    Units:
        ``pcm`` is s16le mono; ``start_sample`` counts samples at ``rate_hz`` from the
        session's beginning.
    """

    pcm: bytes
    rate_hz: int
    start_sample: int

    @property
    def samples(self) -> int:
        """How many samples the frame holds."""
        return len(self.pcm) // SAMPLE_BYTES

    @property
    def end_sample(self) -> int:
        """The index just past the last sample."""
        return self.start_sample + self.samples


def samples_to_ms(samples: int, rate_hz: int) -> int:
    """Whole milliseconds that ``samples`` last, rounded down."""
    return samples * 1000 // rate_hz


def ms_to_samples(duration_ms: float, rate_hz: int) -> int:
    """Samples in ``duration_ms``, rounded down; a whole number may be larger than any float."""
    return int(duration_ms * rate_hz // 1000)


def silence(samples: int) -> bytes:
    """Return ``samples`` of digital silence."""
    return bytes(samples * SAMPLE_BYTES)
