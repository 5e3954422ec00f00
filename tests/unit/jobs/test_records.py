from __future__ import annotations

import pytest

from duologue.jobs.records import OWNER_LOST, JobStatus, after_restart
from tests.unit.jobs.desks import record


@pytest.mark.parametrize("attempts", [0, 1])
def test_one_that_was_worked_on_waits_again(attempts: int) -> None:
    running = record(status=JobStatus.RUNNING, attempts=attempts, progress=60)
    waiting = after_restart(running, 2, 5000.0)
    assert (waiting.status, waiting.progress) == (JobStatus.QUEUED, 0)


def test_one_that_was_begun_too_often_has_failed_and_says_why() -> None:
    failed = after_restart(record(status=JobStatus.RUNNING, attempts=2), 2, 5000.0)
    assert (failed.status, failed.error_code) == (JobStatus.FAILED, OWNER_LOST)
    assert failed.completed_at == 5000.0
    assert failed.has_ended


def test_one_that_waits_goes_on_waiting() -> None:
    assert after_restart(record(), 1, 5000.0) == record()
