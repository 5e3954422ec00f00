"""Jobs of two hosts, each with a desk of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from duologue.core.errors import CapacityError, ProtocolError
from duologue.hosts.fleet_jobs import FleetJobs, Keeper
from duologue.jobs.desk import JobDesk
from duologue.jobs.port import position_of, read_all
from tests.unit.jobs.desks import Echo, desk, record, until_ended


@dataclass
class Fleet:
    jobs: FleetJobs
    desks: list[JobDesk]
    keepers: list[Keeper]
    is_whole: bool = True

    async def at(self, number: int) -> list[str]:
        found = await self.desks[number].page(
            "me", "echo", after=None, limit=50, newest_first=False
        )
        return [each.id for each in found]


@asynccontextmanager
async def fleet(tmp_path: Path, *, max_queued: int = 64) -> AsyncIterator[Fleet]:
    echo = Echo()
    echo.go.set()
    first, second = tmp_path / "first", tmp_path / "second"
    async with (
        desk(first, echo, max_queued=max_queued) as one,
        desk(second, echo, max_queued=max_queued) as two,
    ):
        made: Fleet
        keepers = [Keeper("a", one), Keeper("b", two)]
        jobs = FleetJobs(lambda: made.keepers, lambda: made.is_whole)
        made = Fleet(jobs, [one, two], keepers)
        yield made
        for desk_ in made.desks:  # no file is being opened when they are closed
            for record_ in await desk_.page("me", "echo", after=None, limit=50, newest_first=True):
                await until_ended(desk_, record_.id)


async def test_jobs_are_spread_and_found_again_wherever_they_are(tmp_path: Path) -> None:
    async with fleet(tmp_path) as made:
        for number in range(1, 21):
            await made.jobs.submit(record(number), b"hello")
        spread = [await made.at(0), await made.at(1)]
        assert min(map(len, spread)) > 2
        for (job_id, *_), desk_ in zip(spread, made.desks, strict=True):
            assert (await made.jobs.get("me", job_id)).id == job_id
            await until_ended(desk_, job_id)
            assert await read_all(await made.jobs.result("me", job_id), 100) == b"hello"
            await made.jobs.delete("me", job_id)
        assert [len(await made.at(0)), len(await made.at(1))] == [len(each) - 1 for each in spread]
        with pytest.raises(ProtocolError) as gone:
            await made.jobs.get("me", spread[0][0])
        assert gone.value.code == "video_not_found"
        with pytest.raises(ProtocolError):
            await made.jobs.get("other", spread[0][1])


async def test_pages_are_of_all_of_them_together(tmp_path: Path) -> None:
    async with fleet(tmp_path) as made:
        for number in range(1, 9):
            await made.jobs.submit(record(number), b"hello")
        found: list[str] = []
        after = None
        while page := await made.jobs.page("me", "echo", after=after, limit=3, newest_first=True):
            found += [each.id for each in page]
            after = position_of(page[-1])
        assert found == [f"job_{number}" for number in range(8, 0, -1)]


async def test_a_key_is_known_at_whichever_host_its_job_is(tmp_path: Path) -> None:
    async with fleet(tmp_path) as made:
        for number in (0, 1):
            keyed = record(number, idempotency_key=f"k{number}", fingerprint=b"1")
            await made.desks[number].submit(keyed, b"hello")
        for number in (0, 1):
            again = record(9, idempotency_key=f"k{number}", fingerprint=b"1")
            assert (await made.jobs.submit(again, b"hello")).id == f"job_{number}"
            known = await made.jobs.with_key("me", f"k{number}")
            assert known is not None
            assert known.id == f"job_{number}"
        assert await made.jobs.with_key("me", "other") is None


async def test_where_one_is_full_or_goes_down_another_takes_the_job(tmp_path: Path) -> None:
    async with fleet(tmp_path, max_queued=0) as made:
        with pytest.raises(CapacityError, match="jobs wait"):
            await made.jobs.submit(record(1), b"hello")
    async with fleet(tmp_path) as made:
        made.keepers[0] = replace(made.keepers[0], takes=False)
        for number in range(1, 9):
            await made.jobs.submit(record(number), b"hello")
        assert len(await made.at(1)) == 8


async def test_what_may_be_at_a_host_that_is_away_is_not_said_to_be_nowhere(
    tmp_path: Path,
) -> None:
    async with fleet(tmp_path) as made:
        made.is_whole = False
        with pytest.raises(CapacityError) as away:
            await made.jobs.get("me", "job_1")
        assert away.value.code == "session_host_lost"
        made.keepers.clear()
        with pytest.raises(CapacityError):
            await made.jobs.submit(record(1), b"hello")
