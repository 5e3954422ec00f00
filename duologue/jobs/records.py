"""What is known of a job. This module must not know where that is stored, or what the work is."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class JobStatus(StrEnum):
    """Where a job is; the names are those that clients read."""

    QUEUED = "queued"
    RUNNING = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


ENDED = (JobStatus.COMPLETED, JobStatus.FAILED)

OWNER_LOST = "owner_lost"
"""The server that worked on it died, more often than a job is begun."""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    Args:
        kind: Who can do it.
        caller: Whose it is; nobody else sees it.
        about: What shows of it where jobs are listed; small. All that is asked lies beside the
            record, and is read by whoever does it.
        progress: 0 to 100.
        attempts: How often it was begun.
        media: Of the result, once there is one; ``size_bytes``: of its file.
        idempotency_key: A second request with it is this job, if ``fingerprint`` is the same.

    Units:
        Times are Unix seconds.
    """

    id: str
    kind: str
    caller: str
    about: bytes
    created_at: float
    status: JobStatus = JobStatus.QUEUED
    progress: int = 0
    attempts: int = 0
    completed_at: float | None = None
    expires_at: float | None = None
    error_code: str = ""
    error_message: str = ""
    media: str = ""
    size_bytes: int = 0
    idempotency_key: str | None = None
    fingerprint: bytes = b""

    @property
    def has_ended(self) -> bool:
        """It was done, or has failed."""
        return self.status in ENDED


def after_restart(record: JobRecord, max_attempts: int, now: float) -> JobRecord:
    """Return what becomes of a job that was not over when its server ended.

    It waits again, or has failed if it was begun too often: a job that brings the server down must
    not do so for ever.
    """
    if record.status is JobStatus.QUEUED:
        return record
    if record.attempts < max_attempts:
        return msgspec.structs.replace(record, status=JobStatus.QUEUED, progress=0)
    return msgspec.structs.replace(
        record,
        status=JobStatus.FAILED,
        error_code=OWNER_LOST,
        error_message=f"the server ended {record.attempts} times while it worked on this",
        completed_at=now,
    )
