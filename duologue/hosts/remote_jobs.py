"""The jobs of a session host at the other end of a link, as a ``JobPort``.

This module must not know links, nor what the work is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from duologue.hosts.job_questions import (
    AskDeleteJob,
    AskJob,
    AskJobPiece,
    AskJobs,
    AskJobWithKey,
    AskSubmitJob,
    JobPiece,
    JobQuestion,
    OneJob,
    SomeJobs,
)
from duologue.hosts.questions import Question, Reply
from duologue.hosts.served_jobs import MAX_PIECE_BYTES
from duologue.jobs.port import Position
from duologue.jobs.records import JobRecord


class RemoteJobs:
    """A ``JobPort``.

    Args:
        ask: Asks the host; raises ``DuologueError`` where there is no answer.
    """

    def __init__(self, ask: Callable[[Question], Awaitable[Reply]]) -> None:
        self._ask = ask

    async def submit(self, record: JobRecord, request: bytes) -> JobRecord:
        """Take a job."""
        return await self._one(AskSubmitJob(record, request))

    async def with_key(self, caller: str, key: str) -> JobRecord | None:
        """Return the job that was asked for with an idempotency key."""
        reply = await self._ask(AskJobWithKey(caller, key))
        assert isinstance(reply, OneJob), "each kind of question has one kind of answer"
        return reply.record

    async def get(self, caller: str, job_id: str) -> JobRecord:
        """Return a job."""
        return await self._one(AskJob(caller, job_id))

    async def page(
        self, caller: str, kind: str, *, after: Position | None, limit: int, newest_first: bool
    ) -> list[JobRecord]:
        """Return a page of a caller's jobs."""
        reply = await self._ask(AskJobs(caller, kind, after, limit, newest_first))
        assert isinstance(reply, SomeJobs)
        return reply.records

    async def result(self, caller: str, job_id: str, start: int = 0) -> RemoteResult:
        """Return the result of a job that is done; what can be refused is refused here."""
        result = RemoteResult(self._ask, caller, job_id, start)
        await result.begin()
        return result

    async def delete(self, caller: str, job_id: str) -> None:
        """Forget a job."""
        await self._ask(AskDeleteJob(caller, job_id))

    async def _one(self, question: JobQuestion) -> JobRecord:
        reply = await self._ask(question)
        assert isinstance(reply, OneJob)
        assert reply.record is not None
        return reply.record


class RemoteResult:
    """The result of a job; a ``JobResult``. Nothing of it is held at the host between pieces."""

    def __init__(
        self, ask: Callable[[Question], Awaitable[Reply]], caller: str, job_id: str, start: int
    ) -> None:
        self.size_bytes = 0
        self._ask = ask
        self._caller = caller
        self._job_id = job_id
        self._next = start
        self._first = b""

    async def begin(self) -> None:
        """Fetch the first piece."""
        self._first = await self._piece(MAX_PIECE_BYTES)

    async def read(self, most: int) -> bytes:
        """Return the next bytes."""
        if self._first:
            data, self._first = self._first[:most], self._first[most:]
            return data
        return await self._piece(most)

    async def close(self) -> None:
        """Nothing is held."""

    async def _piece(self, most: int) -> bytes:
        reply = await self._ask(AskJobPiece(self._caller, self._job_id, self._next, most))
        assert isinstance(reply, JobPiece)
        self.size_bytes = reply.size_bytes
        self._next += len(reply.data)
        return reply.data
