"""What one step of a 7B lockstep model costs on one card, as measured, for simulations.

One NVIDIA H200, a model of PersonaPlex' and Moshi's true architecture with random weights (speed
does not depend on their values), a frame from the host's PCM to the host's PCM: encode, language
model and decode of one frame for all rows. Median and p99 of 120 frames each, in milliseconds; ours
are those of ``bench_moshi_gpu.py``. Between the measured rows costs are interpolated; beyond the
last they go on with the last slope, and are guesses. "Half window" is 1500 frames on average.
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
        (
            (1, 7.79, 7.92),
            (8, 11.42, 11.72),
            (16, 14.23, 14.67),
            (32, 20.48, 20.94),
            (64, 32.65, 33.05),
            (80, 39.30, 40.29),
        ),
        held=80,
    ),
    FrameCost(
        "fp8 weights and KV, bf16 codec, full window",
        (
            (1, 6.15, 6.31),
            (8, 7.95, 8.30),
            (16, 9.71, 10.07),
            (32, 12.98, 13.22),
            (64, 18.89, 19.48),
            (128, 32.25, 34.49),
            (168, 40.03, 40.59),
        ),
        held=168,
    ),
    FrameCost(
        "fp8 weights and KV, bf16 codec, half window",
        (
            (1, 6.04, 6.06),
            (8, 7.43, 7.52),
            (16, 8.34, 8.52),
            (32, 10.30, 10.70),
            (64, 14.46, 14.83),
            (128, 22.61, 23.36),
            (320, 46.73, 48.82),
        ),
        held=320,
    ),
)
