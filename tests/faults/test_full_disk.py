"""Jobs on a disk that fills up: what does not fit fails or is refused for that, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import CapacityError
from duologue.jobs.desk import JobDesk
from duologue.jobs.files import JobFiles
from duologue.jobs.records import JobRecord, JobStatus
from duologue.jobs.settings import JobSettings
from duologue.jobs.store import JobStore
from tests.faults.test_surroundings import small_disk
from tests.patience import PATIENCE_S
from tests.unit.jobs.desks import record, until, until_ended

DISK_BYTES = 8 << 20
"""Of which the log of the records may take half."""

PIECE_BYTES = 512 * 1024
SMALL, LARGE = b"1", b"99"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, DISK_BYTES):
        yield folder


async def make(request: bytes, _tell: Callable[[int], None]) -> AsyncIterator[tuple[str, bytes]]:
    """Give as many pieces as are asked for."""
    for _ in range(int(request)):
        yield "text/plain", bytes(PIECE_BYTES)


class FullDisk(JobStore):
    """Records that are not taken while the disk is full."""

    is_full = False

    async def update(self, record: JobRecord) -> bool:
        if self.is_full and record.has_ended:
            raise CapacityError("full", retry_after_s=1.0, code="storage_full")
        return await super().update(record)


def desk(folder: Path, store: JobStore | None = None) -> JobDesk:
    return JobDesk(
        store or JobStore(folder / "jobs.sqlite"),
        JobFiles(folder),
        {"echo": make},
        JobSettings(max_running=1),
        SystemClock(),
        sweep_s=0.05,
    )


async def test_a_result_that_does_not_fit_fails_its_job_alone_and_takes_no_room(disk: Path) -> None:
    jobs = desk(disk)
    async with jobs.open():
        for number in range(3):
            await jobs.submit(record(2 * number), LARGE)
            await jobs.submit(record(2 * number + 1), SMALL)
            failed = await until_ended(jobs, f"job_{2 * number}")
            assert (failed.status, failed.error_code) == (JobStatus.FAILED, "storage_full")
            assert "no room" in failed.error_message
            assert (await until_ended(jobs, f"job_{2 * number + 1}")).size_bytes == PIECE_BYTES
        assert not list(disk.glob("*.partial"))  # noqa: ASYNC240


async def test_a_job_that_cannot_be_written_down_is_refused_and_the_next_is_taken(
    disk: Path,
) -> None:
    jobs = desk(disk)
    async with jobs.open():
        for _ in range(3):
            with pytest.raises(CapacityError, match="no room for the records") as refused:
                await jobs.submit(record(1), bytes(2 * DISK_BYTES))
            assert refused.value.code == "storage_full"
            assert refused.value.retry_after_s > 0
        await jobs.submit(record(2), SMALL)
        assert (await until_ended(jobs, "job_2")).status is JobStatus.COMPLETED
        page = await jobs.page("me", "echo", after=None, limit=9, newest_first=True)
        assert [each.id for each in page] == ["job_2"]


async def test_ends_that_the_disk_did_not_take_are_told_and_written_when_it_does(
    tmp_path: Path,
) -> None:
    store = FullDisk(tmp_path / "jobs.sqlite")
    jobs = desk(tmp_path, store)
    async with jobs.open():
        store.is_full = True
        await jobs.submit(record(1), SMALL)
        await jobs.submit(record(2), b"nonsense")
        done, crashed = [await until_ended(jobs, f"job_{number}") for number in (1, 2)]
        assert (done.status, done.size_bytes) == (JobStatus.COMPLETED, PIECE_BYTES)
        assert crashed.status is JobStatus.FAILED
        result = await jobs.result("me", "job_1")
        assert len(await result.read(2 * PIECE_BYTES)) == PIECE_BYTES
        await result.close()
        written = await store.get("job_1")
        assert written is not None
        assert written.status is JobStatus.RUNNING
        store.is_full = False
        await until(lambda: not jobs._unwritten)
    again = desk(tmp_path)
    async with again.open():
        assert (await again.get("me", "job_1")) == done
        assert (await again.get("me", "job_2")) == crashed


async def test_jobs_that_could_not_be_begun_are_begun_later(tmp_path: Path) -> None:
    class NoBeginning(JobStore):
        refusals = 3

        async def update(self, record: JobRecord) -> bool:
            if record.status is JobStatus.RUNNING and self.refusals:
                self.refusals -= 1
                raise CapacityError("full", retry_after_s=1.0, code="storage_full")
            return await super().update(record)

    jobs = desk(tmp_path, NoBeginning(tmp_path / "jobs.sqlite"))
    async with jobs.open():
        await jobs.submit(record(1), SMALL)
        async with asyncio.timeout(PATIENCE_S):
            assert (await until_ended(jobs, "job_1")).status is JobStatus.COMPLETED
