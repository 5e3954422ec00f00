"""Jobs that share no work share no fault either."""

from __future__ import annotations

import pytest

from duologue.core.errors import EngineError, OutOfMemory
from duologue.engines.payloads import TextDelta
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.contract import Job, Step

JOBS = [Job(name) for name in "abc"]


def step_of(fault: BaseException) -> list[Step]:
    """Each job says its name once; the second one meets a fault."""

    def step_one(job: Job) -> Step:
        if job.id == "b":
            raise fault
        return Step((TextDelta(job.id),))

    return step_apart(step_one, JOBS)


def test_who_finds_no_memory_fails_alone_and_nothing_of_the_others_is_lost() -> None:
    first, failed, last = step_of(MemoryError())
    assert (first.outputs, last.outputs) == ((TextDelta("a"),), (TextDelta("c"),))
    assert isinstance(failed.error, OutOfMemory)
    assert failed.error.code == "out_of_memory"
    assert first.error is last.error is None


def test_an_error_is_that_of_its_job() -> None:
    refused = EngineError("no")
    assert [step.error for step in step_of(refused)] == [None, refused, None]


def test_a_bug_is_for_the_worker_to_die_of() -> None:
    with pytest.raises(ZeroDivisionError):
        step_of(ZeroDivisionError())
