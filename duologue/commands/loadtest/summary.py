"""The figures of a load test, from what its callers met with. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.commands.loadtest.caller import CallerResult


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution, in seconds."""

    count: int
    median: float
    p90: float
    p99: float
    largest: float

    def __str__(self) -> str:
        return (
            f"median {self.median:.3f} s, p90 {self.p90:.3f} s, p99 {self.p99:.3f} s, "
            f"largest {self.largest:.3f} s ({self.count})"
        )


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """What all callers met with together.

    Args:
        errors: Each message with the number of callers that met it.
    """

    sessions: int
    connected: int
    connect: Spread | None
    wait: Spread | None
    unanswered: int
    gap_s: float
    sessions_with_gaps: int
    dropped_frames: int
    errors: tuple[tuple[str, int], ...]

    @property
    def is_clean(self) -> bool:
        """Every call was held to its end and every question answered."""
        return self.connected == self.sessions and not self.unanswered and not self.errors


def summarise(results: Sequence[CallerResult]) -> LoadSummary:
    """Return the figures."""
    errors = Counter(error for result in results for error in dict.fromkeys(result.errors))
    connects = [result.connect_s for result in results if result.connect_s is not None]
    return LoadSummary(
        sessions=len(results),
        connected=len(connects),
        connect=spread(connects),
        wait=spread([wait for result in results for wait in result.waits_s]),
        unanswered=sum(result.unanswered for result in results),
        gap_s=sum(result.gap_s for result in results),
        sessions_with_gaps=sum(result.gap_s > 0 for result in results),
        dropped_frames=sum(result.dropped_frames for result in results),
        errors=tuple(errors.most_common()),
    )


def spread(values: Sequence[float]) -> Spread | None:
    """Return a distribution by nearest rank; ``None`` of nothing."""
    if not values:
        return None
    ordered = sorted(values)

    def rank(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return Spread(len(ordered), rank(0.5), rank(0.9), rank(0.99), ordered[-1])


def summary_lines(summary: LoadSummary) -> list[str]:
    """Return the figures as text."""
    lines = [f"sessions       {summary.connected} of {summary.sessions} connected"]
    if summary.connect is not None:
        lines.append(f"connecting     {summary.connect}")
    if summary.wait is not None:
        lines.append(f"waiting        {summary.wait}")
        lines.append("               from the end of speech to the first audible sample")
    else:
        lines.append("waiting        no answer was waited for")
    lines.append(f"unanswered     {summary.unanswered}")
    lines.append(
        f"gaps           {summary.gap_s:.2f} s inside answers, in "
        f"{summary.sessions_with_gaps} sessions"
    )
    lines.append(f"not sent       {summary.dropped_frames} frames of 20 ms")
    lines += [f"error          {count} x {message}" for message, count in summary.errors]
    return lines
