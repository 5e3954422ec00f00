from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
import msgspec
import pytest

from duologue.core.errors import ConfigError
from duologue.jobs.port import position_of
from duologue.jobs.records import JobStatus
from duologue.jobs.store import JobStore
from tests.unit.jobs.desks import record

ASKED = b"all that is asked"


@asynccontextmanager
async def store(folder: Path) -> AsyncIterator[JobStore]:
    made = JobStore(folder / "jobs.sqlite")
    await made.open()
    try:
        yield made
    finally:
        await made.close()


async def test_records_are_there_after_a_restart(tmp_path: Path) -> None:
    done = record(
        status=JobStatus.COMPLETED, media="video/mp4", size_bytes=7, completed_at=2.5, expires_at=9
    )
    async with store(tmp_path) as first:
        await first.insert(record(), ASKED)
        await first.update(done)
    async with store(tmp_path) as second:
        assert await second.get("job_1") == done
        assert await second.get("job_2") is None
        await second.delete("job_1")
        assert await second.get("job_1") is None


async def test_the_oldest_that_waits_is_next(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        for number in (3, 1, 2):
            await jobs.insert(record(number), ASKED)
        await jobs.update(record(3, status=JobStatus.RUNNING))
        assert (await jobs.next_queued()) == record(1)
        assert await jobs.count(JobStatus.QUEUED) == 2
        assert [each.id for each in await jobs.with_status(JobStatus.RUNNING)] == ["job_3"]


async def test_pages_hold_a_callers_own_jobs(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        for number in range(1, 6):
            await jobs.insert(record(number, caller="me" if number != 3 else "other"), ASKED)

        async def page(after: int | None, newest_first: bool) -> list[str]:
            place = None if after is None else position_of(record(after))
            found = await jobs.page("me", "echo", after=place, limit=2, newest_first=newest_first)
            return [each.id for each in found]

        assert await page(None, True) == ["job_5", "job_4"]
        assert await page(4, True) == ["job_2", "job_1"]
        assert await page(None, False) == ["job_1", "job_2"]
        assert await page(2, False) == ["job_4", "job_5"]
        # One that is no more still has a place.
        assert await page(3, True) == ["job_2", "job_1"]


async def test_one_key_is_one_job(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        await jobs.insert(record(1, idempotency_key="k", fingerprint=b"1"), ASKED)
        assert await jobs.with_key("me", "k") == record(1, idempotency_key="k", fingerprint=b"1")
        assert await jobs.with_key("other", "k") is None
        assert not await jobs.insert(record(2, idempotency_key="k"), ASKED)
        assert await jobs.get("job_2") is None
        await jobs.insert(record(3, caller="other", idempotency_key="k"), ASKED)
        await jobs.insert(msgspec.structs.replace(record(4)), ASKED)


async def test_what_is_asked_lies_beside_the_record(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        await jobs.insert(record(), ASKED)
        await jobs.update(record(progress=50))
        assert await jobs.request("job_1") == ASKED
        assert await jobs.request("job_2") == b""


async def test_records_of_an_earlier_release_are_read(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        await jobs.insert(record(about=b""), ASKED)
    db = await aiosqlite.connect(tmp_path / "jobs.sqlite")
    await db.execute("alter table jobs drop column about")
    await db.commit()
    await db.close()
    async with store(tmp_path) as jobs:
        found = await jobs.get("job_1")
        assert found is not None
        assert found.about == ASKED
    async with store(tmp_path) as jobs:
        assert await jobs.get("job_1") == found


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.sqlite").write_bytes(b"no database, but long enough to be one" * 100)
    with pytest.raises(ConfigError, match=r"jobs\.sqlite"):
        await JobStore(tmp_path / "jobs.sqlite").open()


async def test_a_job_is_forgotten_once(tmp_path: Path) -> None:
    async with store(tmp_path) as jobs:
        await jobs.insert(record(), ASKED)
        assert await jobs.update(record(progress=50))
        assert await jobs.delete("job_1")
        assert not await jobs.update(record(progress=60))
        assert not await jobs.delete("job_1")
