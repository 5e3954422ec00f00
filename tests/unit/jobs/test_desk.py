from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duologue.core.errors import CapacityError, ProtocolError, RateLimited
from duologue.jobs.port import read_all
from duologue.jobs.records import OWNER_LOST, JobStatus
from duologue.jobs.store import JobStore
from tests.unit.jobs.desks import Clock, Echo, desk, record, until, until_ended

HELLO = b"hello"


async def test_a_job_is_done_and_its_result_is_kept(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo) as jobs:
        await jobs.submit(record(), HELLO)
        await until(lambda: bool(echo.begun))
        running = await jobs.get("me", "job_1")
        assert (running.status, running.progress) == (JobStatus.RUNNING, 40)
        with pytest.raises(ProtocolError, match="40 % done") as early:
            await jobs.result("me", "job_1")
        assert early.value.code == "video_not_ready"

        echo.go.set()
        done = await until_ended(jobs, "job_1")
        assert (done.status, done.progress, done.media) == ("completed", 100, "text/plain")
        assert await read_all(await jobs.result("me", "job_1"), 2) == HELLO
        rest = await jobs.result("me", "job_1", 3)
        assert rest.size_bytes == 5
        assert await read_all(rest, 100) == b"lo"
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
        await jobs.submit(record(1), request_)
        await jobs.submit(record(2), HELLO)
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
        await jobs.submit(record(1), HELLO)
        await until(lambda: bool(echo.begun))
        await jobs.submit(record(2), HELLO)
        await jobs.submit(record(3), HELLO)
        with pytest.raises(CapacityError, match="2 jobs wait"):
            await jobs.submit(record(4), HELLO)
        assert len(echo.begun) == 1
        echo.go.set()
        assert (await until_ended(jobs, "job_3")).status is JobStatus.COMPLETED
        await jobs.submit(record(4), HELLO)


@pytest.mark.parametrize("running", [0, 1, 3])
async def test_one_of_many_who_delete_a_job_at_once_has_deleted_it(
    tmp_path: Path, running: int
) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, max_running=max(1, running), max_queued=5) as jobs:
        submitted = [jobs.submit(record(number), HELLO) for number in range(5)]
        await asyncio.gather(*submitted)
        if running:  # else they are begun while they are deleted
            await until(lambda: len(echo.begun) == running)
        for number in range(5):
            many = [jobs.delete("me", f"job_{number}") for _ in range(6)]
            refused = [each for each in await asyncio.gather(*many, return_exceptions=True) if each]
            assert len(refused) == 5
            assert all(isinstance(each, ProtocolError) for each in refused)
        assert await jobs.page("me", "echo", after=None, limit=5, newest_first=True) == []


async def test_as_many_wait_as_before_when_jobs_were_deleted_by_many(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, max_running=1, max_queued=4) as jobs:
        await jobs.submit(record(0), HELLO)
        await until(lambda: bool(echo.begun))
        for number in range(1, 5):
            await jobs.submit(record(number), HELLO)
        many = [jobs.delete("me", f"job_{number}") for number in (1, 2) for _ in range(6)]
        await asyncio.gather(*many, return_exceptions=True)
        new = [jobs.submit(record(number), HELLO) for number in range(5, 25)]
        taken = await asyncio.gather(*new, return_exceptions=True)
        full = [each for each in taken if isinstance(each, CapacityError)]
        kept = await jobs.page("me", "echo", after=None, limit=50, newest_first=True)
        assert len(kept) == 3 + len(new) - len(full) <= 5
        while len(kept) < 5:
            await jobs.submit(record(100 + len(kept)), HELLO)
            kept = await jobs.page("me", "echo", after=None, limit=50, newest_first=True)
        with pytest.raises(CapacityError, match="4 jobs wait, the limit is 4"):
            await jobs.submit(record(200), HELLO)


async def test_a_caller_with_a_limit_has_so_many_that_have_not_ended(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, quotas={"me": 2}) as jobs:
        two = [jobs.submit(record(number), HELLO) for number in (1, 2)]
        await asyncio.gather(*two)
        await until(lambda: len(echo.begun) == 2)
        with pytest.raises(RateLimited, match=r"2 jobs of this API key.*its limit is 2"):
            await jobs.submit(record(3), HELLO)
        await jobs.submit(record(4, caller="somebody else"), HELLO)
        echo.go.set()
        await until_ended(jobs, "job_1")
        await until_ended(jobs, "job_2")
        await jobs.submit(record(5), HELLO)
        await until_ended(jobs, "job_5")


async def test_a_job_begins_when_it_is_its_turn(tmp_path: Path) -> None:
    echo, turn = Echo(), asyncio.Event()
    echo.go.set()
    asked: list[str] = []

    @asynccontextmanager
    async def turns(caller: str) -> AsyncIterator[None]:
        asked.append(caller)
        await turn.wait()
        yield

    async with desk(tmp_path, echo, turn=turns) as jobs:
        await jobs.submit(record(), HELLO)
        await until(lambda: bool(asked))
        assert (asked, echo.begun) == (["me"], [])
        turn.set()
        await until_ended(jobs, "job_1")
        assert echo.begun == [HELLO]


async def test_deleting_stops_the_work(tmp_path: Path) -> None:
    echo = Echo()
    async with desk(tmp_path, echo, max_running=1) as jobs:
        await jobs.submit(record(1), HELLO)
        await until(lambda: bool(echo.begun))
        await jobs.submit(record(2), HELLO)
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
        await jobs.submit(record(), HELLO)
        with pytest.raises(ProtocolError):
            await jobs.get("other", "job_1")
        with pytest.raises(ProtocolError):
            await jobs.delete("other", "job_1")
        assert await jobs.page("other", "echo", after=None, limit=5, newest_first=True) == []


async def test_the_same_key_is_the_same_job_also_after_a_restart(tmp_path: Path) -> None:
    keyed = {"idempotency_key": "k", "fingerprint": b"1"}
    async with desk(tmp_path, Echo()) as jobs:
        await jobs.submit(record(1, **keyed), HELLO)
    async with desk(tmp_path, Echo()) as jobs:
        assert (await jobs.submit(record(2, **keyed), HELLO)).id == "job_1"
        known = await jobs.with_key("me", "k")
        assert known is not None
        assert known.id == "job_1"
        assert await jobs.with_key("other", "k") is None
        with pytest.raises(ProtocolError) as refused:
            await jobs.submit(record(3, idempotency_key="k", fingerprint=b"2"), HELLO)
        assert refused.value.code == "idempotency_key_reused"


async def test_the_same_key_sent_twice_at_once_is_one_job_and_takes_one_place(
    tmp_path: Path,
) -> None:
    keyed = {"idempotency_key": "k", "fingerprint": b"1"}
    async with desk(tmp_path, Echo(), max_running=1, max_queued=2) as jobs:
        taken = await asyncio.gather(
            *[jobs.submit(record(number, **keyed), HELLO) for number in (1, 2)]
        )
        assert len({each.id for each in taken}) == 1
        assert len(await jobs.page("me", "echo", after=None, limit=5, newest_first=True)) == 1
        for number in (3, 4):
            await jobs.submit(record(number), HELLO)


async def test_while_it_is_closed_it_refuses_all_and_says_when_to_come_back(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, Echo()) as jobs:
        pass
    for attempt in (
        jobs.submit(record(), HELLO),
        jobs.get("me", "job_1"),
        jobs.with_key("me", "k"),
        jobs.page("me", "echo", after=None, limit=5, newest_first=True),
        jobs.result("me", "job_1"),
        jobs.delete("me", "job_1"),
    ):
        with pytest.raises(CapacityError) as refused:
            await attempt
        assert refused.value.retry_after_s > 0


async def test_a_result_whose_file_is_gone_is_not_found(tmp_path: Path) -> None:
    echo = Echo()
    echo.go.set()
    async with desk(tmp_path, echo) as jobs:
        await jobs.submit(record(), HELLO)
        await until_ended(jobs, "job_1")
        (tmp_path / "job_1.result").unlink()
        with pytest.raises(ProtocolError) as gone:
            await jobs.result("me", "job_1")
        assert gone.value.code == "video_not_found"


async def test_a_server_that_ends_in_good_order_leaves_its_jobs_to_the_next(tmp_path: Path) -> None:
    for _ in range(4):
        echo = Echo()
        async with desk(tmp_path, echo, max_attempts=2) as jobs:
            if not await jobs.page("me", "echo", after=None, limit=5, newest_first=True):
                await jobs.submit(record(), HELLO)
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
    await store.insert(record(1, status=JobStatus.RUNNING, attempts=2), HELLO)
    await store.insert(record(2, status=JobStatus.RUNNING, attempts=1), HELLO)
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
            await jobs.submit(record(number), big)
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
