"""Steps of jobs that share no work: what one of them breaks, it breaks for itself.

Most runners take the jobs of a batch one by one. Where the third of five finds no memory, two have
given something that must not be lost, and two have not begun: nobody could run that step again. So
each job answers for itself. This module must not know what a step does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duologue.core.errors import EngineError, OutOfMemory
from duologue.engines.runners.contract import Job, Step


def step_apart(step_one: Callable[[Job], Step], jobs: Sequence[Job]) -> list[Step]:
    """Step each job by itself; one that fails, or finds no memory, ends alone.

    What it held is let go with it, so that those after it in the batch may find room.
    """
    return [_step_alone(step_one, job) for job in jobs]


def _step_alone(step_one: Callable[[Job], Step], job: Job) -> Step:
    try:
        return step_one(job)
    except EngineError as exc:
        return Step(error=exc)
    except MemoryError:
        return Step(error=OutOfMemory("no memory was left for a step of this job"))
