"""What one step of a 7B lockstep model costs on one card, as measured, for simulations.

One NVIDIA H200, a model of PersonaPlex' and Moshi's true architecture with random weights (speed
does not depend on their values), a frame from the host's PCM to the host's PCM: encode, language
model and decode of one frame for all rows. Median and p99 of 120 frames each, in milliseconds.
Between the measured rows costs are interpolated; beyond the last they go on with the last slope,
and are guesses. "Half window" is derived: the measured whole frame less what reading 1500 instead
of 3000 frames of the past saved in the measured temporal transformer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class FrameCost:
    """Measured steps.

    Args:
        points: Rows, median and p99 in ms, by rows.
        held: Sessions whose memory fits the card (141 GB), whatever the time allows.
    """

    name: str
    points: tuple[tuple[int, float, float], ...]
    held: int

    def p50_s(self, rows: int) -> float:
        return self._at(rows, 1)

    def p99_s(self, rows: int) -> float:
        return self._at(rows, 2)

    def draw_s(self, rows: int, random: np.random.Generator) -> float:
        """One step: the median's worth, and a tail whose p99 is the measured one."""
        p50, p99 = self.p50_s(rows), self.p99_s(rows)
        return p50 + (p99 - p50) / math.log(100) * random.exponential()

    @property
    def measured(self) -> int:
        return self.points[-1][0]

    def _at(self, rows: int, column: int) -> float:
        pairs = list(pairwise(self.points))
        low, high = next((pair for pair in pairs if rows <= pair[1][0]), pairs[-1])
        slope = (high[column] - low[column]) / (high[0] - low[0])
        return max(low[column] + slope * (rows - low[0]), self.points[0][column]) / 1000


COSTS = (
    FrameCost(
        "reference package, bf16, full window",
        (
            (1, 18.69, 19.25),
            (8, 20.13, 23.45),
            (16, 25.15, 26.76),
            (32, 33.25, 33.77),
            (64, 48.07, 49.55),
            (80, 49.99, 50.97),
        ),
        held=82,
    ),
    FrameCost(
        "bf16, full window",
        ((1, 9.94, 9.99), (32, 22.70, 22.76), (64, 35.70, 35.84), (80, 42.17, 42.99)),
        held=84,
    ),
    FrameCost(
        "fp8 weights and KV, bf16 codec, full window",
        ((1, 8.20, 8.30), (64, 25.03, 25.10), (128, 37.33, 38.66), (168, 47.35, 50.24)),
        held=168,
    ),
    FrameCost(
        "fp8 KV, half window (derived)",
        ((1, 9.94, 9.99), (64, 18.89, 18.98), (256, 50.8, 53.2)),
        held=336,
    ),
)
