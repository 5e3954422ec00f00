"""What a scheduler is: a pure choice among the jobs that could be stepped now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from duologue.engines.runners.contract import Job


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do next.

    Args:
        batch: Jobs to step now; may be empty.
        wake_at: With an empty batch: when to ask again even if nothing new has come.
    """

    batch: Sequence[Job]
    wake_at: float | None = None


class Scheduler(Protocol):
    """Chooses batches. May keep state about jobs, but no clock."""

    def next_batch(self, ready: Sequence[Job], now: float) -> Choice:
        """Choose among ``ready``, which is ordered by how long each job has waited for a step."""
        ...
