"""All that a gateway sees of stored jobs, which may be kept in another process.

This module must not know where they are, nor what the work is.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from duologue.jobs.records import JobRecord

Position: TypeAlias = tuple[float, str]
"""A job's place in a list: when it was asked for, and its id."""


def position_of(record: JobRecord) -> Position:
    """Return where in a list a job stands."""
    return record.created_at, record.id


class JobResult(Protocol):
    """The result of a job, which is read piece by piece and is to be closed.

    Args:
        size_bytes: Of all of it.
    """

    size_bytes: int

    async def read(self, most: int) -> bytes:
        """Return the next bytes, at most so many; empty: there are no more.

        Raises:
            DuologueError: It is no longer there, or its keeper cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


class JobPort(Protocol):
    """The jobs of one server, or of several.

    Concurrency:
        Belongs to the event loop.
    """

    async def submit(self, record: JobRecord, request: bytes) -> JobRecord:
        """Take a job; one with a known idempotency key is the job that there is.

        Args:
            request: All that is asked, for whoever does it.

        Raises:
            CapacityError: Too many wait, or nobody can take one now.
            ProtocolError: The idempotency key belongs to another request.
        """
        ...

    async def with_key(self, caller: str, key: str) -> JobRecord | None:
        """Return the job that was asked for with an idempotency key."""
        ...

    async def get(self, caller: str, job_id: str) -> JobRecord:
        """Return a job.

        Raises:
            ProtocolError: There is none, or it is somebody else's.
        """
        ...

    async def page(
        self, caller: str, kind: str, *, after: Position | None, limit: int, newest_first: bool
    ) -> list[JobRecord]:
        """Return a page of a caller's jobs, those behind ``after`` where that is given."""
        ...

    async def result(self, caller: str, job_id: str, start: int = 0) -> JobResult:
        """Return the result of a job that is done, from a byte on.

        Raises:
            ProtocolError: There is no such job, it is not done yet, or it has failed.
        """
        ...

    async def delete(self, caller: str, job_id: str) -> None:
        """Forget a job, and stop it if it is worked on.

        Raises:
            ProtocolError: There is none.
        """
        ...


async def read_all(result: JobResult, piece_bytes: int) -> bytes:
    """Return a whole result, read in pieces, and let go of it."""
    pieces = []
    try:
        while piece := await result.read(piece_bytes):
            pieces.append(piece)
    finally:
        await result.close()
    return b"".join(pieces)
