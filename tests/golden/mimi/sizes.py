"""The small network of the tests: all parts of the published one, and its window."""

from __future__ import annotations

from duologue.codecs.mimi.config import MimiConfig

TINY = MimiConfig(
    filters=4,
    ratios=(4, 3, 2),
    dimension=16,
    layers=2,
    heads=2,
    feed_forward=32,
    codebook_size=32,
    codebook_dimension=8,
    stored_codebooks=6,
    codebooks=4,
)
