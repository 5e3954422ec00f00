"""First ready, first stepped.

After a step a job goes to the back, so that jobs which are always ready take turns and none
starves.
"""

from __future__ import annotations

from collections.abc import Sequence

from duologue.engines.runners.contract import Job
from duologue.engines.schedulers.base import Choice


class Fifo:
    """The oldest of those that wait, as many as fit.

    Args:
        max_batch: How many jobs one step may take.
    """

    def __init__(self, max_batch: int) -> None:
        self._max_batch = max_batch

    def next_batch(self, ready: Sequence[Job], now: float) -> Choice:
        """Take the first ``max_batch`` of ``ready``, at once."""
        return Choice(ready[: self._max_batch])
