"""What a server says of itself between the rounds of a soak, and whether it stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MEMORY_SLACK_BYTES = 4 << 20
MEMORY_SLACK_SHARE = 0.03
"""What the allocator may keep more of at one quiet moment than at another.

All that fills to a bound is full before the first reading (``filling``), and from then on there are
as many objects in the server as before; free pieces of what the C library has asked the system for
were seen to come and go by 2 MB.
"""

STILL_GROWING = 0.5
"""Of that slack: as much more in the last third than in the one before is no wavering any more."""

FILE_SLACK = 2
"""Connections of those who ask, and what a worker is started with."""


def parse(page: str) -> dict[str, float]:
    """Read figures in Prometheus' text format, by name with labels."""
    lines = (line.rpartition(" ") for line in page.splitlines() if line and line[0] != "#")
    return {name: float(value) for name, _, value in lines}


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a quiet server.

    Args:
        held: Bytes behind all bounds.
        requests: Of the engine, that are busy or queued, as a share of what there may be.
    """

    at_s: float
    memory_bytes: float
    files: float
    tasks: float
    sessions: float
    detached: float
    held: float
    stage_fill: float

    @classmethod
    def of(cls, figures: dict[str, float], at_s: float) -> Reading:
        """Take what is asked for."""
        held = (value for name, value in figures.items() if name.startswith("duologue_held_bytes"))
        return cls(
            at_s=at_s,
            memory_bytes=figures["process_resident_memory_bytes"],
            files=figures["process_open_fds"],
            tasks=figures["duologue_loop_tasks"],
            sessions=figures["duologue_sessions_active"],
            detached=figures["duologue_sessions_detached"],
            held=sum(held),
            stage_fill=figures['duologue_bound_fill_ratio{bound="stage_slots"}'],
        )

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left of any call."""
        return not (self.sessions or self.detached or self.held or self.stage_fill)


def memory_by_thirds(readings: Sequence[Reading]) -> tuple[float, float, float]:
    """Return the usual memory of the first, the second and the last third of some readings."""
    third = max(1, len(readings) // 3)
    parts = (readings[:third], readings[third:-third] or readings[:third], readings[-third:])
    first, second, last = (median(each.memory_bytes for each in part) for part in parts)
    return first, second, last


def complaints(readings: Sequence[Reading]) -> list[str]:
    """Say what grows; the first reading is taken when all is warm, and full that only fills."""
    if len(readings) < 3:
        return [f"{len(readings)} quiet moments are too few to tell"]
    found = []
    third = len(readings) // 3
    first, last = readings[:third], readings[-third:]
    before, between, after = memory_by_thirds(readings)
    slack = max(MEMORY_SLACK_BYTES, before * MEMORY_SLACK_SHARE)
    if after > before + slack or after > between + STILL_GROWING * slack:
        told = ", ".join(f"{each / 1e6:.1f}" for each in (before, between, after))
        found.append(f"memory grew: {told} MB in the thirds of the time")
    for what in ("files", "tasks"):
        start = max(getattr(each, what) for each in first)
        end = median(getattr(each, what) for each in last)
        slack = FILE_SLACK if what == "files" else 0
        if end > start + slack:
            found.append(f"{what} grew from {start:g} to {end:g}")
    return found


class Drift:
    """Whether what is sent in pace with playback keeps that pace.

    What comes late by chance comes late once; so of each part of an answer the earliest counts. A
    machine that stands still for longer than what was sent ahead lasts makes a gap and no drift:
    what follows is judged by itself.
    """

    def __init__(self, lead_s: float) -> None:
        self.gaps = 0
        self._lead_s = lead_s
        self._parts: list[list[tuple[float, float]]] = [[]]

    def note(self, arrived_s: float, position_s: float) -> None:
        """Sound has come that begins at a position of its answer."""
        part = self._parts[-1]
        if part and arrived_s > part[-1][0] + self._lead_s:
            self.gaps += 1
            part = []
            self._parts.append(part)
        part.append((arrived_s, arrived_s - position_s))

    def seconds(self) -> float:
        """How much later, against playback, the last third of a part came than the middle one.

        The first third is sent ahead.
        """
        return max(map(_slip_s, self._parts))


def _slip_s(points: Sequence[tuple[float, float]]) -> float:
    third = len(points) // 3
    if third < 5:
        return 0.0
    middle = min(offset for _, offset in points[third : 2 * third])
    last = min(offset for _, offset in points[2 * third :])
    return abs(last - middle)
