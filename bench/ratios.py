"""How much longer one thing takes than another, where both vary more than they differ. Pure.

Two that stood beside each other in a round give one ratio; what is stated is the median of all, and
the interval that holds the true one in 19 of 20 such runs, whatever the distribution is: ranks of a
binomial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.report import Row


@dataclass
class Took:
    """What calls took, in the order of the rounds.

    Args:
        wall: Seconds until the picture was there; ``device``: between events in the stream before
            and after; ``cpu``: of the process, a wait for the device included.
    """

    wall: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall_s: float, device_s: float, cpu_s: float) -> None:
        """Take note of one."""
        self.wall.append(wall_s)
        self.device.append(device_s)
        self.cpu.append(cpu_s)

    def over(self, other: Took) -> Row:
        """Return how much more it is, round by round."""
        ratios = [one / base for one, base in zip(self.wall, other.wall, strict=True)]
        low, high = interval(ratios)
        return {
            "rounds": len(ratios),
            "p50_s": round(median(self.wall), 4),
            "ratio": round(median(ratios), 4),
            "ratio_low": round(low, 4),
            "ratio_high": round(high, 4),
            "ratio_min": round(min(ratios), 4),
            "ratio_max": round(max(ratios), 4),
            "ratio_of_fastest": round(min(self.wall) / min(other.wall), 4),
            "ratio_of_p50": round(median(self.wall) / median(other.wall), 4),
            "ratio_device": _median_ratio(self.device, other.device),
            "ratio_cpu": _median_ratio(self.cpu, other.cpu),
        }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return what holds the median in 19 of 20 cases; the outermost where there are few values."""
    ordered = sorted(values)
    left_out, chance = 0, 0.5 ** len(ordered)
    while chance <= 0.025:
        left_out += 1
        chance += math.comb(len(ordered), left_out) * 0.5 ** len(ordered)
    # Of the ranks that may be left out on a side the last one is the end of the interval.
    at = max(0, left_out - 1)
    return ordered[at], ordered[-1 - at]


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return round(median(one / base for one, base in zip(ours, theirs, strict=True)), 4)
