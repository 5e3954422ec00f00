from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import CapacityError, ProtocolError
from duologue.jobs.records import OWNER_LOST, JobStatus
from duologue.jobs.store import JobStore
from tests.unit.jobs.desks import Clock, Echo, desk, record, until, until_ended


async def test_a_job_is_done_and_its_result_is_kept(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo) as jobs:
        await jobs.submit(record())
        await until(lambda: bool(echo.begun))
        running = await jobs.get("me", "job_1")
        assert (running.status, running.progress) == (JobStatus.RUNNING, 40)
        with pytest.raises(ProtocolError, match="40 % done") as early:
            await jobs.result("me", "job_1")
        assert early.value.code == "video_not_ready"

        echo.go.set()
        done = await until_ended(jobs, "job_1")
        assert (done.status, done.progress, done.media) == ("completed", 100, "text/plain")
        path = await jobs.result("me", "job_1")
        assert path.read_bytes() == b"hello"
        assert done.size_bytes == 5
        assert done.expires_at is not None


FAULTS = {b"fail": "out_of_memory", b"crash": "server_error"}


@pytest.mark.parametrize(("request_", "code"), FAULTS.items())
async def test_one_that_fails_says_why_and_others_go_on(
    tmp_path: Path, request_: bytes, code: str
) -> None:
    echo = Echo()
    echo.go.set()
    async with desk(tmp_path, echo, max_running=1) as jobs:
        await jobs.submit(record(1, request=request_))
        await jobs.submit(record(2))
        failed = await until_ended(jobs, "job_1")
        assert (failed.status, failed.error_code) == (JobStatus.FAILED, code)
        assert (await until_ended(jobs, "job_2")).status is JobStatus.COMPLETED
        with pytest.raises(ProtocolError) as refused:
            await jobs.result("me", "job_1")
        assert refused.value.code == "video_failed"
        assert not list(tmp_path.glob("*.partial"))  # noqa: ASYNC240


async def test_only_a_few_are_worked_on_and_only_so_many_wait(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, max_running=1, max_queued=2) as jobs:
        await jobs.submit(record(1))
        await until(lambda: bool(echo.begun))
        await jobs.submit(record(2))
        await jobs.submit(record(3))
        with pytest.raises(CapacityError, match="2 jobs wait"):
            await jobs.submit(record(4))
        assert len(echo.begun) == 1
        echo.go.set()
        assert (await until_ended(jobs, "job_3")).status is JobStatus.COMPLETED
        await jobs.submit(record(4))


async def test_deleting_stops_the_work(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, max_running=1) as jobs:
        await jobs.submit(record(1))
        await until(lambda: bool(echo.begun))
        await jobs.submit(record(2))
        await jobs.delete("me", "job_2")
        await jobs.delete("me", "job_1")
        assert echo.cancelled == [b"hello"]
        for job_id in ("job_1", "job_2"):
            with pytest.raises(ProtocolError) as gone:
                await jobs.get("me", job_id)
            assert gone.value.code == "video_not_found"
        assert not list(tmp_path.glob("*.partial"))  # noqa: ASYNC240


async def test_nobody_sees_the_jobs_of_others(tmp_path: Path) -> None:
    async with desk(tmp_path, Echo()) as jobs:
        await jobs.submit(record())
        with pytest.raises(ProtocolError):
            await jobs.get("other", "job_1")
        with pytest.raises(ProtocolError):
            await jobs.delete("other", "job_1")
        assert await jobs.page("other", "echo", after=None, limit=5, newest_first=True) == []


async def test_the_same_key_is_the_same_job_also_after_a_restart(tmp_path: Path) -> None:
    keyed = {"idempotency_key": "k", "fingerprint": b"1"}
    async with desk(tmp_path, Echo()) as jobs:
        await jobs.submit(record(1, **keyed))
    async with desk(tmp_path, Echo()) as jobs:
        assert (await jobs.submit(record(2, **keyed))).id == "job_1"
        with pytest.raises(ProtocolError) as refused:
            await jobs.submit(record(3, idempotency_key="k", fingerprint=b"2"))
        assert refused.value.code == "idempotency_key_reused"


async def test_a_server_that_ends_in_good_order_leaves_its_jobs_to_the_next(tmp_path: Path) -> None:
    for _ in range(4):
        echo = Echo()
        async with desk(tmp_path, echo, max_attempts=2) as jobs:
            if not await jobs.page("me", "echo", after=None, limit=5, newest_first=True):
                await jobs.submit(record())
            await until(lambda: bool(echo.begun))  # noqa: B023
    echo = Echo()
    echo.go.set()
    async with desk(tmp_path, echo) as jobs:
        assert (await until_ended(jobs, "job_1")).attempts == 1


async def test_a_job_that_brings_the_server_down_is_not_begun_for_ever(tmp_path: Path) -> None:
    async with desk(tmp_path, Echo()):
        pass
    store = JobStore(tmp_path / "jobs.sqlite")
    await store.open()
    await store.insert(record(1, status=JobStatus.RUNNING, attempts=2))
    await store.insert(record(2, status=JobStatus.RUNNING, attempts=1))
    await store.close()
    (tmp_path / "job_1.partial").write_bytes(b"half")
    echo = Echo()
    echo.go.set()
    async with desk(tmp_path, echo, max_attempts=2) as jobs:
        lost = await jobs.get("me", "job_1")
        assert (lost.status, lost.error_code) == (JobStatus.FAILED, OWNER_LOST)
        assert lost.expires_at is not None
        assert (await until_ended(jobs, "job_2")).status is JobStatus.COMPLETED
        assert not (tmp_path / "job_1.partial").exists()


async def test_results_are_kept_for_a_while_and_within_a_size(tmp_path: Path) -> None:
    echo, clock = Echo(), Clock()
    echo.go.set()
    big = bytes(700_000)
    async with desk(tmp_path, echo, clock, max_bytes=1 << 20, keep_s=100) as jobs:
        for number in (1, 2):
            await jobs.submit(record(number, request=big))
            await until_ended(jobs, f"job_{number}")
        await until(lambda: not (tmp_path / "job_1.result").exists())
        with pytest.raises(ProtocolError):
            await jobs.get("me", "job_1")
        assert (await jobs.get("me", "job_2")).size_bytes == 700_000
    clock.ahead_s = 101
    async with desk(tmp_path, echo, clock, keep_s=100) as jobs:
        with pytest.raises(ProtocolError):
            await jobs.get("me", "job_2")
        assert not (tmp_path / "job_2.result").exists()
