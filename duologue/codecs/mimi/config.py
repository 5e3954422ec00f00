"""The sizes of a Mimi network; needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MimiConfig:
    """The defaults are those of the published network, with the 8 codebooks that Moshi uses.

    Source:
        Moshi paper, section 3.3 and table 1.
    """

    sample_rate_hz: int = 24_000
    filters: int = 64
    """Channels of the first convolution; each change of rate doubles them."""
    ratios: tuple[int, ...] = (8, 6, 5, 4)
    """How much each stage of the decoder raises the rate; the encoder goes the other way."""
    kernel: int = 7
    last_kernel: int = 3
    residual_kernel: int = 3
    compression: int = 2
    """A residual branch works on this fraction of the channels."""
    dimension: int = 512
    layers: int = 8
    heads: int = 8
    feed_forward: int = 2048
    context: int = 250
    """How many positions attention sees, the current one included."""
    rope_base: float = 10_000.0
    positions_per_frame: int = 2
    codebook_size: int = 2048
    codebook_dimension: int = 256
    stored_codebooks: int = 32
    """As many as the file has."""
    codebooks: int = 8
    """As many as are used; the first one carries meaning, the others sound."""

    def __post_init__(self) -> None:
        if not 2 <= self.codebooks <= self.stored_codebooks:
            raise ValueError(
                f"codebooks is {self.codebooks}, must be 2 to {self.stored_codebooks} (stored)"
            )
        if self.dimension % (2 * self.heads):
            raise ValueError(
                f"dimension {self.dimension} must be a multiple of twice the {self.heads} heads"
            )
        if self.filters % self.compression:
            raise ValueError(f"filters {self.filters} must be a multiple of {self.compression}")

    @property
    def frame_samples(self) -> int:
        """Samples of one frame: 1920, which last 80 ms."""
        return math.prod(self.ratios) * self.positions_per_frame

    @property
    def head_dimension(self) -> int:
        """Channels of one attention head."""
        return self.dimension // self.heads
