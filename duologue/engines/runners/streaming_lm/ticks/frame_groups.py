"""How many groups a lockstep model's sessions are stepped in, and how many fit at all.

One group wastes no step, but a frame may wait a whole period for it. More groups wait less and
read the weights more often. This module must not know sessions or clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

StepCost = Callable[[int], float]
"""Rows of a step -> seconds it takes, as measured; must not fall as rows grow."""

MAX_GROUPS = 8


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Groups whose ticks stand at equal distances in the period.

    Args:
        groups: How many.
        rows: The most sessions that one of them may hold and still be in time.
        longest_wait_s: How long before its tick a frame's last sample comes, at most.
    """

    groups: int
    rows: int
    longest_wait_s: float


@dataclass(frozen=True, slots=True)
class StepTiming:
    """What the length of a step is judged by.

    Args:
        period_s: From one tick of a group to the next.
        late_s: How long after its last sample has come a frame may be ready.
        reserve_s: How long a frame's last sample lies there at least before its tick.
        message_s: The longest messages that clients send. A session's frames are cut so that one
            ends at its group's tick, hence no frame waits longer than for one message.
    """

    period_s: float = 0.080
    late_s: float = 0.080
    reserve_s: float = 0.005
    message_s: float = 0.080

    def longest_wait_s(self, groups: int) -> float:
        """From the arrival of a frame's last sample to its tick, at worst.

        The second reserve is what a client's clock may wander until it is followed.
        """
        return 2 * self.reserve_s + min(self.message_s, self.period_s / groups)

    def fits(self, groups: int, step_s: float) -> bool:
        """Tell whether steps of that length are in time, and done before the next group's."""
        in_time = self.longest_wait_s(groups) + step_s <= self.late_s
        return in_time and step_s <= self.period_s / groups


def plan_groups(
    sessions: int, cost: StepCost, timing: StepTiming, max_groups: int = MAX_GROUPS
) -> GroupPlan | None:
    """Choose the fewest groups that keep every frame in time; ``None`` where no number does.

    The fewest take the least of the device, which prefill and batch work share.
    """
    for groups in range(1, max_groups + 1):
        rows = _most_rows(groups, sessions, cost, timing)
        if groups * rows >= sessions:
            return GroupPlan(groups, rows, timing.longest_wait_s(groups))
    return None


def capacity(cost: StepCost, timing: StepTiming, most: int, max_groups: int = MAX_GROUPS) -> int:
    """Tell how many sessions are in time, up to ``most``, in whatever number of groups."""
    held = (g * _most_rows(g, most, cost, timing) for g in range(1, max_groups + 1))
    return min(most, max(held))


def _most_rows(groups: int, most: int, cost: StepCost, timing: StepTiming) -> int:
    rows = 0
    while rows < most and timing.fits(groups, cost(rows + 1)):
        rows += 1
    return rows
