"""Barriers: a crash stays where it happened."""

from __future__ import annotations

import asyncio

import pytest

from duologue.core.tasks import CrashBarrier, guard


def test_a_crash_is_handed_over_and_life_goes_on() -> None:
    crashes: list[Exception] = []
    barrier = CrashBarrier(crashes.append)
    for _ in range(2):
        with barrier:
            raise ValueError("broken")
    assert [str(exc) for exc in crashes] == ["broken", "broken"]


def test_a_body_that_ends_well_reports_nothing() -> None:
    crashes: list[Exception] = []
    with CrashBarrier(crashes.append):
        pass
    assert crashes == []


def test_work_that_is_run_within_returns_what_it_does_or_nothing() -> None:
    crashes: list[Exception] = []
    barrier = CrashBarrier(crashes.append)
    assert barrier.run(int, "5") == 5
    assert crashes == []
    assert barrier.run(int, "five") is None
    assert [type(exc) for exc in crashes] == [ValueError]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_cancellation_and_exit_pass_through(kind: type[BaseException]) -> None:
    crashes: list[Exception] = []
    with pytest.raises(kind), CrashBarrier(crashes.append):
        raise kind
    assert crashes == []


async def test_a_guarded_child_does_not_take_its_siblings_along() -> None:
    crashes: list[Exception] = []
    finished = asyncio.Event()

    async def crash() -> None:
        raise ValueError("broken")

    async def finish() -> None:
        await asyncio.sleep(0)
        finished.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(guard(crash(), crashes.append))
        group.create_task(guard(finish(), crashes.append))
    assert finished.is_set()
    assert [str(exc) for exc in crashes] == ["broken"]


async def test_a_guarded_child_can_be_cancelled() -> None:
    crashes: list[Exception] = []
    task = asyncio.create_task(guard(asyncio.Event().wait(), crashes.append))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert crashes == []
