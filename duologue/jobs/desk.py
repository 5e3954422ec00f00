"""Takes jobs, has them worked on, a few at a time, and keeps what comes out for a while.

Every job ends: done, failed, or begun again by the next server where this one dies. This module
must not know what the work is, nor who asks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO, Protocol

import msgspec
import structlog

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, DuologueError, ProtocolError, RateLimited
from duologue.core.tasks import guard
from duologue.jobs.files import JobFiles
from duologue.jobs.port import Position
from duologue.jobs.records import JobRecord, JobStatus, after_restart
from duologue.jobs.settings import JobSettings
from duologue.jobs.store import JobStore
from duologue.protocol.errors import ErrorCode

log = structlog.get_logger(__name__)

SWEEP_S = 60.0
"""How often is looked for what has been kept long enough, and for what the disk did not take."""

_NO_QUOTAS: Mapping[str, int] = {}
_FULL_RETRY_S = 10.0
_CLOSED_RETRY_S = 2.0


class Work(Protocol):
    """Does jobs of one kind."""

    def __call__(
        self, request: bytes, tell: Callable[[int], None]
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the result piece by piece, each with its media type.

        Args:
            request: All that is asked.
            tell: Takes the progress, 0 to 100.

        Raises:
            DuologueError: It cannot be done.
        """
        ...


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[None]
    progress: int = 0
    ended: bool = False
    deleted: bool = False


class OpenResult:
    """The file of a result; a ``JobResult``."""

    def __init__(self, file: IO[bytes], size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._file = file

    async def read(self, most: int) -> bytes:
        """Return the next bytes."""
        return await asyncio.to_thread(self._file.read, most)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._file.close)


class JobDesk:
    """All jobs of a server; a ``JobPort`` that refuses all while it is not open.

    Args:
        works: Who does each kind.
        turn: Holds a slot for a job of a caller; it waits until there is one.
        quotas: How many jobs a caller may have that have not ended; others: as many as there is
            room for.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        store: JobStore,
        files: JobFiles,
        works: Mapping[str, Work],
        settings: JobSettings,
        clock: Clock,
        *,
        turn: Callable[[str], AbstractAsyncContextManager[None]] = lambda _caller: nullcontext(),
        quotas: Mapping[str, int] = _NO_QUOTAS,
        sweep_s: float = SWEEP_S,
    ) -> None:
        self._store = store
        self._files = files
        self._works = works
        self._settings = settings
        self._clock = clock
        self._turn = turn
        self._quotas = quotas
        self._arriving: Counter[str] = Counter()
        """Jobs of each caller that are on their way into the store."""

        self._sweep_s = sweep_s
        self._news = asyncio.Event()
        self._running: dict[str, _Running] = {}
        self._unwritten: dict[str, JobRecord] = {}
        """How jobs ended whose records the disk did not take; no more than may run or wait."""

        self._is_open = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Take up what the last server left, and work until left.

        Raises:
            ConfigError: The folder cannot be used.
        """
        await asyncio.to_thread(self._files.open)
        try:
            await self._store.open()
            await self._take_up()
            # Not a group around the body, which would wrap whatever is raised there.
            loop = asyncio.get_running_loop()
            keeper = loop.create_task(self._run(), name="jobs")
            self._is_open = True
            try:
                yield
            finally:
                self._is_open = False
                keeper.cancel()
                await asyncio.wait((keeper,))
        finally:
            await self._store.close()
            self._files.close()

    async def submit(self, record: JobRecord, request: bytes) -> JobRecord:
        """Take a job; one with a known idempotency key is the job that there is.

        Args:
            request: All that is asked, for whoever does it.

        Raises:
            CapacityError: Too many wait, the disk is full, or the server is starting or going down.
            RateLimited: The caller has as many as it may.
            ProtocolError: The idempotency key belongs to another request.
        """
        if (known := await self._known(record)) is not None:
            return known
        self._check_open()
        self._arriving[record.caller] += 1
        try:
            await self._check_room(record.caller)
            is_new = await self._store.insert(record, request)
        finally:
            self._arriving[record.caller] -= 1
            if not self._arriving[record.caller]:
                del self._arriving[record.caller]
        if not is_new and (known := await self._known(record)) is not None:
            return known  # it was sent twice at once
        self._news.set()
        return record

    async def with_key(self, caller: str, key: str) -> JobRecord | None:
        """Return the job that was asked for with an idempotency key."""
        self._check_open()
        known = await self._store.with_key(caller, key)
        return None if known is None else self._live(known)

    async def get(self, caller: str, job_id: str) -> JobRecord:
        """Return a job.

        Raises:
            ProtocolError: There is none, or it is somebody else's.
        """
        self._check_open()
        record = await self._store.get(job_id)
        if record is None or record.caller != caller:
            raise no_such_job(job_id)
        return self._live(record)

    async def page(
        self, caller: str, kind: str, *, after: Position | None, limit: int, newest_first: bool
    ) -> list[JobRecord]:
        """Return a page of a caller's jobs."""
        self._check_open()
        found = await self._store.page(
            caller, kind, after=after, limit=limit, newest_first=newest_first
        )
        return [self._live(each) for each in found]

    async def result(self, caller: str, job_id: str, start: int = 0) -> OpenResult:
        """Return the result of a job that is done, from a byte on.

        Raises:
            ProtocolError: There is no such job, it is not done yet, or it has failed.
        """
        record = await self.get(caller, job_id)
        if record.status is JobStatus.FAILED:
            raise ProtocolError(
                f"the job has failed: {record.error_message}", code=ErrorCode.JOB_FAILED
            )
        if record.status is not JobStatus.COMPLETED:
            raise ProtocolError(
                f"the job is {record.status}, {record.progress} % done",
                code=ErrorCode.JOB_NOT_READY,
            )
        try:
            file = await asyncio.to_thread(self._files.result, job_id, start)
        except FileNotFoundError:
            raise no_such_job(job_id) from None  # deleted meanwhile
        return OpenResult(file, record.size_bytes)

    async def delete(self, caller: str, job_id: str) -> None:
        """Forget a job, and stop it if it is worked on.

        Raises:
            ProtocolError: There is none, or somebody else was first to delete it.
        """
        await self.get(caller, job_id)
        if not await self._store.delete(job_id):
            raise no_such_job(job_id)
        running = self._running.get(job_id)
        if running is not None:
            running.deleted = True
            running.task.cancel()
            await asyncio.wait((running.task,))
        await self._forget(job_id)

    async def _known(self, record: JobRecord) -> JobRecord | None:
        """Return the job that was asked for with the same idempotency key."""
        key = record.idempotency_key
        known = None if key is None else await self.with_key(record.caller, key)
        if known is not None and known.fingerprint != record.fingerprint:
            raise ProtocolError(
                "this Idempotency-Key was sent with another request; take a new one",
                code=ErrorCode.IDEMPOTENCY_KEY_REUSED,
                param="Idempotency-Key",
            )
        return known

    async def _check_room(self, caller: str) -> None:
        """Look for a place; who arrives is counted first: none is to be missed in between."""
        all_arriving, arriving = self._arriving.total(), self._arriving[caller]
        waiting = await self._store.count(JobStatus.QUEUED) + all_arriving - 1
        if waiting >= self._settings.max_queued:
            raise CapacityError(
                f"{waiting} jobs wait, the limit is {self._settings.max_queued}",
                retry_after_s=_FULL_RETRY_S,
            )
        quota = self._quotas.get(caller)
        if quota is None:
            return
        others = await self._store.count_open(caller) + arriving - 1
        if others >= quota:
            raise RateLimited(
                f"{others} jobs of this API key wait or are worked on, its limit is {quota}",
                retry_after_s=_FULL_RETRY_S,
            )

    def _check_open(self) -> None:
        if not self._is_open:
            raise CapacityError(
                "the server is starting or going down", retry_after_s=_CLOSED_RETRY_S
            )

    def _live(self, record: JobRecord) -> JobRecord:
        record = self._unwritten.get(record.id, record)
        running = self._running.get(record.id)
        if running is None or record.has_ended:
            return record
        return msgspec.structs.replace(record, progress=running.progress)

    async def _take_up(self) -> None:
        now = self._clock.wall_time()
        for record in await self._store.with_status(JobStatus.RUNNING):
            changed = after_restart(record, self._settings.max_attempts, now)
            log.warning("job_owner_lost", status=str(changed.status), attempts=record.attempts)
            await self._store.update(self._expiring(changed))
        done = await self._store.with_status(JobStatus.COMPLETED)
        await asyncio.to_thread(self._files.keep_only, {each.id for each in done})
        await self._make_room()
        self._news.set()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep(), name="jobs-sweep")
            await self._keep(group)

    async def _keep(self, group: asyncio.TaskGroup) -> None:
        """Begin jobs while there is room for them."""
        while True:
            await self._news.wait()
            self._news.clear()
            await guard(self._begin_some(group), self._crashed)

    async def _begin_some(self, group: asyncio.TaskGroup) -> None:
        while len(self._running) < self._settings.max_running:
            record = await self._store.next_queued()
            if record is None:
                return
            begun = msgspec.structs.replace(
                record, status=JobStatus.RUNNING, attempts=record.attempts + 1
            )
            if await self._store.update(begun):  # else it was deleted meanwhile
                task = group.create_task(self._guarded(begun), name="job")
                self._running[record.id] = _Running(task)

    @staticmethod
    def _crashed(exc: Exception) -> None:
        """Say that the records could not be kept; the next news are another attempt."""
        log.error("jobs_crashed", exc_info=exc)

    async def _guarded(self, record: JobRecord) -> None:
        crashes: list[Exception] = []
        try:
            await guard(self._work(record), crashes.append)
            if crashes:
                log.error("job_failed", kind=record.kind, exc_info=crashes[0])
                failed = self._end_failed(record, ErrorCode.SERVER_ERROR, "the work crashed")
                await guard(failed, self._crashed)
        except asyncio.CancelledError:
            running = self._running[record.id]
            if running.ended:
                await guard(self._write_ends(), self._crashed)
            elif not running.deleted:
                await guard(self._put_back(record), self._crashed)
            raise
        finally:
            self._running.pop(record.id, None)
            self._news.set()

    async def _put_back(self, record: JobRecord) -> None:
        """The server ends in good order: this was no attempt that brought it down."""
        attempts = record.attempts - 1
        await self._store.update(
            msgspec.structs.replace(record, status=JobStatus.QUEUED, attempts=attempts)
        )

    async def _work(self, record: JobRecord) -> None:
        try:
            media, size = await self._written(record)
        except DuologueError as exc:
            log.warning("job_failed", kind=record.kind, code=exc.code)
            await self._end_failed(record, exc.code, exc.message)
            return
        done = msgspec.structs.replace(
            record,
            status=JobStatus.COMPLETED,
            progress=100,
            media=media,
            size_bytes=size,
            completed_at=self._clock.wall_time(),
        )
        await self._settle(done)
        await self._make_room()

    async def _settle(self, record: JobRecord) -> None:
        """Write how a job ended; where the disk does not take it, the next sweep tries again."""
        self._unwritten[record.id] = self._expiring(record)
        self._running[record.id].ended = True
        await guard(self._write_ends(), self._crashed)

    async def _write_ends(self) -> None:
        for record in list(self._unwritten.values()):
            await self._store.update(record)
            self._unwritten.pop(record.id, None)

    async def _written(self, record: JobRecord) -> tuple[str, int]:
        """Do the work; returns the media type and the size of the result."""
        media = ""
        request = await self._store.request(record.id)
        await asyncio.to_thread(self._files.begin, record.id)
        tell = partial(self._tell, record.id)
        async with self._turn(record.caller):
            async for kind, data in self._works[record.kind](request, tell):
                media = kind
                await asyncio.to_thread(self._files.write, record.id, data)
        return media, await asyncio.to_thread(self._files.finish, record.id)

    async def _end_failed(self, record: JobRecord, code: str, message: str) -> None:
        await asyncio.to_thread(self._files.remove, record.id)
        failed = msgspec.structs.replace(
            record,
            status=JobStatus.FAILED,
            error_code=code,
            error_message=message,
            completed_at=self._clock.wall_time(),
        )
        await self._settle(failed)

    def _tell(self, job_id: str, progress: int) -> None:
        running = self._running.get(job_id)
        if running is not None:
            running.progress = progress

    def _expiring(self, record: JobRecord) -> JobRecord:
        if record.completed_at is None:
            return record
        return msgspec.structs.replace(
            record, expires_at=record.completed_at + self._settings.keep_s
        )

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_s)
            await guard(self._make_room(), self._crashed)
            await guard(self._write_ends(), self._crashed)
            self._news.set()  # jobs may wait that could not be begun

    async def _make_room(self) -> None:
        """Forget what has been kept long enough, and the oldest where all is too much."""
        now = self._clock.wall_time()
        ended = await self._store.with_status(JobStatus.COMPLETED, JobStatus.FAILED)
        total = sum(record.size_bytes for record in ended)
        for record in ended:
            is_old = record.expires_at is not None and record.expires_at <= now
            if is_old or (total > self._settings.max_bytes and record.size_bytes):
                total -= record.size_bytes
                await self._forget(record.id)

    async def _forget(self, job_id: str) -> None:
        self._unwritten.pop(job_id, None)
        await self._store.delete(job_id)
        await asyncio.to_thread(self._files.remove, job_id)


def no_such_job(job_id: str) -> ProtocolError:
    """Return the refusal of a job that there is not, or not for this caller."""
    return ProtocolError(
        f"there is no job {job_id[:80]!r}", code=ErrorCode.JOB_NOT_FOUND, param="id"
    )
