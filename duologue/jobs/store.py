"""The records of jobs in SQLite, so that a server that is killed forgets none.

Every change is on disk before it counts. This module must not know the work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import msgspec

from duologue.core.errors import ConfigError
from duologue.jobs.files import no_room
from duologue.jobs.port import Position
from duologue.jobs.records import JobRecord, JobStatus

_COLUMNS = tuple(field.name for field in msgspec.structs.fields(JobRecord))
_SCHEMA = """
create table if not exists jobs (
    number integer primary key autoincrement,
    id text not null unique,
    kind text not null,
    caller text not null,
    about blob not null,
    request blob not null,
    created_at real not null,
    status text not null,
    progress integer not null,
    attempts integer not null,
    completed_at real,
    expires_at real,
    error_code text not null,
    error_message text not null,
    media text not null,
    size_bytes integer not null,
    idempotency_key text,
    fingerprint blob not null
);
create unique index if not exists jobs_by_key on jobs (caller, idempotency_key)
    where idempotency_key is not null;
create index if not exists jobs_by_status on jobs (status, number);
create index if not exists jobs_by_time on jobs (caller, kind, created_at, id);
"""
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_EMPTY_LOG = "pragma wal_checkpoint(truncate)"
_HAS_ABOUT = "select count(*) from pragma_table_info('jobs') where name in ('id', 'about')"
_ADD_ABOUT = """
alter table jobs add column about blob not null default x'';
update jobs set about = request;
"""
"""For a table of a release whose records had all that was asked in them."""


class JobStore:
    """One database.

    Concurrency:
        Belongs to the event loop; the database works in a thread of its own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: aiosqlite.Connection | None = None

    async def open(self) -> None:
        """Open the database, and make it where there is none.

        Raises:
            ConfigError: It cannot be opened, or is none.
        """
        try:
            # Each statement is a transaction of its own: one that fails takes no other along.
            self._db = await aiosqlite.connect(self._path, isolation_level=None)
            await self._db.execute("pragma journal_mode = wal")
            await self._db.execute("pragma synchronous = full")
            if await self._number(_HAS_ABOUT) == 1:
                await self._db.executescript(_ADD_ABOUT)
            await self._db.executescript(_SCHEMA)
            await self._db.execute(_EMPTY_LOG)
        except aiosqlite.Error as exc:
            await self.close()
            raise ConfigError(f"jobs.folder: the records in {self._path}: {exc}") from exc

    async def close(self) -> None:
        """Close the database."""
        if self._db is not None:
            await self._db.close()
            self._db = None

    async def insert(self, record: JobRecord, request: bytes) -> bool:
        """Add a job, and all that is asked; returns whether its idempotency key was free.

        Raises:
            CapacityError: The disk is full. Also of ``update`` and ``delete``.
        """
        columns = (*_COLUMNS, "request")
        marks = ", ".join("?" * len(columns))
        added = await self._change(
            f"insert into jobs ({', '.join(columns)}) values ({marks}) "
            "on conflict (caller, idempotency_key) where idempotency_key is not null do nothing",
            [*_values(record), request],
        )
        return added == 1

    async def request(self, job_id: str) -> bytes:
        """Return all that is asked; empty where there is no such job any more."""
        cursor = await self._open.execute("select request from jobs where id = ?", [job_id])
        row = await cursor.fetchone()
        return b"" if row is None else bytes(row[0])

    async def update(self, record: JobRecord) -> bool:
        """Replace what is known of a job; returns whether it is still there."""
        settings = ", ".join(f"{name} = ?" for name in _COLUMNS)
        changed = await self._change(
            f"update jobs set {settings} where id = ?", [*_values(record), record.id]
        )
        return changed == 1

    async def delete(self, job_id: str) -> bool:
        """Forget a job; returns whether it was there."""
        return await self._change("delete from jobs where id = ?", [job_id]) == 1

    async def get(self, job_id: str) -> JobRecord | None:
        """Return a job."""
        return _one(await self._rows("where id = ?", [job_id]))

    async def with_key(self, caller: str, key: str) -> JobRecord | None:
        """Return the job that was asked for with an idempotency key."""
        return _one(await self._rows("where caller = ? and idempotency_key = ?", [caller, key]))

    async def next_queued(self) -> JobRecord | None:
        """Return the job that has waited longest."""
        return _one(
            await self._rows("where status = ? order by number limit 1", [JobStatus.QUEUED])
        )

    async def with_status(self, *statuses: JobStatus) -> list[JobRecord]:
        """Return all jobs that are there, the oldest first."""
        marks = ", ".join("?" * len(statuses))
        return await self._rows(f"where status in ({marks}) order by number", list(statuses))

    async def count(self, status: JobStatus) -> int:
        """Return how many jobs are there."""
        return await self._number("select count(*) from jobs where status = ?", str(status))

    async def count_open(self, caller: str) -> int:
        """Return how many jobs of a caller wait or are worked on."""
        return await self._number(
            "select count(*) from jobs where caller = ? and status in (?, ?)",
            *(caller, str(JobStatus.QUEUED), str(JobStatus.RUNNING)),
        )

    async def page(
        self, caller: str, kind: str, *, after: Position | None, limit: int, newest_first: bool
    ) -> list[JobRecord]:
        """Return jobs of a caller, one page of them.

        Args:
            after: Where the page before ended.
        """
        order, sign = ("desc", "<") if newest_first else ("asc", ">")
        where = "where caller = ? and kind = ?"
        values: list[Any] = [caller, kind]
        if after is not None:
            where += f" and (created_at, id) {sign} (?, ?)"
            values += after
        where += f" order by created_at {order}, id {order} limit ?"
        return await self._rows(where, [*values, limit])

    @property
    def _open(self) -> aiosqlite.Connection:
        assert self._db is not None, "the store is open"
        return self._db

    async def _number(self, query: str, *values: Any) -> int:
        cursor = await self._open.execute(query, values)
        row = await cursor.fetchone()
        return 0 if row is None else int(row[0])

    async def _change(self, statement: str, values: Sequence[Any]) -> int:
        try:
            cursor = await self._open.execute(statement, list(values))
        except aiosqlite.Error as exc:
            if getattr(exc, "sqlite_errorcode", None) in _NO_ROOM:
                # Else the log stays as long as what did not fit, and nothing fits any more.
                with suppress(aiosqlite.Error):
                    await self._open.execute(_EMPTY_LOG)
                raise no_room("the records of jobs") from exc
            raise
        return cursor.rowcount

    async def _rows(self, where: str, values: Sequence[Any]) -> list[JobRecord]:
        cursor = await self._open.execute(
            f"select {', '.join(_COLUMNS)} from jobs {where}", [_plain(each) for each in values]
        )
        return [_record(row) for row in await cursor.fetchall()]


def _values(record: JobRecord) -> list[Any]:
    return [_plain(getattr(record, name)) for name in _COLUMNS]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, JobStatus) else value


def _record(row: Sequence[Any]) -> JobRecord:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["status"] = JobStatus(values["status"])
    return JobRecord(**values)


def _one(records: Sequence[JobRecord]) -> JobRecord | None:
    return records[0] if records else None
