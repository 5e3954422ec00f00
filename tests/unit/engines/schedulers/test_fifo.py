from __future__ import annotations

import pytest

from duologue.engines.runners.contract import Job
from duologue.engines.schedulers import SCHEDULERS
from duologue.engines.schedulers.fifo import Fifo

JOBS = [Job(id=name) for name in "abcde"]


@pytest.mark.parametrize(("max_batch", "chosen"), [(1, "a"), (3, "abc"), (9, "abcde")])
def test_the_first_that_fit_are_chosen_in_order(max_batch: int, chosen: str) -> None:
    choice = Fifo(max_batch).next_batch(JOBS, now=1.0)
    assert "".join(job.id for job in choice.batch) == chosen
    assert choice.wake_at is None


def test_nothing_is_chosen_from_nothing() -> None:
    assert list(Fifo(4).next_batch([], now=1.0).batch) == []


def test_pipelines_find_it_by_name() -> None:
    assert isinstance(SCHEDULERS["fifo"](4), Fifo)
