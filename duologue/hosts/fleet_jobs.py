"""The jobs of several session hosts as one: each job is at one of them, and found by asking.

A job outlives the start of the host that keeps it, so its id names none. This module must not know
links, nor what the work is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duologue.core.errors import CapacityError, ProtocolError
from duologue.hosts.faults import host_lost
from duologue.hosts.routing import ranked_owners
from duologue.jobs.port import JobPort, JobResult, Position, position_of
from duologue.jobs.records import JobRecord
from duologue.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Keeper:
    """A host that keeps jobs.

    Args:
        takes: It does not go down, and its models are loaded.
    """

    tag: str
    jobs: JobPort
    takes: bool = True


class FleetJobs:
    """A ``JobPort``.

    Args:
        keepers: Returns the hosts that can be reached.
        is_whole: Whether these are all that are known: else a job that is not found may be at one
            that is away.
    """

    def __init__(
        self, keepers: Callable[[], Sequence[Keeper]], is_whole: Callable[[], bool]
    ) -> None:
        self._keepers = keepers
        self._is_whole = is_whole

    async def submit(self, record: JobRecord, request: bytes) -> JobRecord:
        """Take a job: at the host that knows its key, else at any that has room."""
        keepers = self._reached()
        key = record.idempotency_key
        if key is not None and len(keepers) > 1:
            known = await asyncio.gather(
                *[each.jobs.with_key(record.caller, key) for each in keepers]
            )
            for keeper, job in zip(keepers, known, strict=True):
                if job is not None:
                    return await keeper.jobs.submit(record, request)
        able = [keeper for keeper in keepers if keeper.takes] or keepers
        # Two gateways that are sent the same key at once choose the same host.
        name = record.id if key is None else f"{record.caller} {key}"
        refusal: CapacityError | None = None
        for place in ranked_owners(name, [keeper.tag for keeper in able]):
            try:
                return await able[place].jobs.submit(record, request)
            except CapacityError as exc:
                refusal = exc
        raise refusal or host_lost()

    async def with_key(self, caller: str, key: str) -> JobRecord | None:
        """Return the job that was asked for with an idempotency key."""
        known = await asyncio.gather(
            *[keeper.jobs.with_key(caller, key) for keeper in self._reached()]
        )
        return next((job for job in known if job is not None), None)

    async def get(self, caller: str, job_id: str) -> JobRecord:
        """Return a job."""
        return (await self._found(caller, job_id))[1]

    async def page(
        self, caller: str, kind: str, *, after: Position | None, limit: int, newest_first: bool
    ) -> list[JobRecord]:
        """Return a page of a caller's jobs: the first of all pages together."""
        pages = await asyncio.gather(
            *[
                keeper.jobs.page(caller, kind, after=after, limit=limit, newest_first=newest_first)
                for keeper in self._reached()
            ]
        )
        found = [record for page in pages for record in page]
        return sorted(found, key=position_of, reverse=newest_first)[:limit]

    async def result(self, caller: str, job_id: str, start: int = 0) -> JobResult:
        """Return the result of a job that is done."""
        keeper, _ = await self._found(caller, job_id)
        return await keeper.jobs.result(caller, job_id, start)

    async def delete(self, caller: str, job_id: str) -> None:
        """Forget a job."""
        keeper, _ = await self._found(caller, job_id)
        await keeper.jobs.delete(caller, job_id)

    async def _found(self, caller: str, job_id: str) -> tuple[Keeper, JobRecord]:
        refusal: ProtocolError | None = None
        for keeper in self._reached():
            try:
                return keeper, await keeper.jobs.get(caller, job_id)
            except ProtocolError as exc:
                if exc.code != ErrorCode.JOB_NOT_FOUND:
                    raise
                refusal = exc
        if refusal is None or not self._is_whole():
            raise host_lost()
        raise refusal

    def _reached(self) -> list[Keeper]:
        keepers = list(self._keepers())
        if not keepers:
            raise host_lost()
        return keepers
