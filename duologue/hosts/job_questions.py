"""What gateways ask the session host about stored jobs, and the answers.

As the methods of ``jobs.port.JobPort``. This module must not know how messages travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.hosts.link_struct import LinkStruct
from duologue.jobs.port import Position
from duologue.jobs.records import JobRecord


class AskSubmitJob(LinkStruct, frozen=True):
    """Take a job. Answered by ``OneJob``."""

    record: JobRecord
    request: bytes


class AskJobWithKey(LinkStruct, frozen=True):
    """Which job was asked for with an idempotency key? Answered by ``OneJob``."""

    caller: str
    key: str


class AskJob(LinkStruct, frozen=True):
    """Where is a job? Answered by ``OneJob``."""

    caller: str
    job_id: str


class AskJobs(LinkStruct, frozen=True):
    """Which jobs does a caller have? Answered by ``SomeJobs``."""

    caller: str
    kind: str
    after: Position | None
    limit: int
    newest_first: bool


class AskJobPiece(LinkStruct, frozen=True):
    """Give a piece of a job's result. Answered by ``JobPiece``."""

    caller: str
    job_id: str
    start: int
    most: int


class AskDeleteJob(LinkStruct, frozen=True):
    """Forget a job. Answered by ``OneJob`` without one."""

    caller: str
    job_id: str


JobQuestion: TypeAlias = (
    AskSubmitJob | AskJobWithKey | AskJob | AskJobs | AskJobPiece | AskDeleteJob
)


class OneJob(LinkStruct, frozen=True):
    """A job; ``None``: there is none, or none any more."""

    record: JobRecord | None


class SomeJobs(LinkStruct, frozen=True):
    """A page of jobs."""

    records: list[JobRecord]


class JobPiece(LinkStruct, frozen=True):
    """Bytes of a result, and how many it has in all; no bytes: it ends there."""

    data: bytes
    size_bytes: int


JobReply: TypeAlias = OneJob | SomeJobs | JobPiece
