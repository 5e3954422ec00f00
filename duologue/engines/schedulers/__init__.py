"""Which jobs a worker steps next: pure policies, one per file, found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from duologue.engines.schedulers.base import Scheduler
from duologue.engines.schedulers.fifo import Fifo

SCHEDULERS: Mapping[str, Callable[[int], Scheduler]] = {"fifo": Fifo}
"""Name in a pipeline -> maker, called with the runner's ``max_batch``."""
