from __future__ import annotations

import asyncio

import pytest

from duologue.core.errors import CapacityError, RateLimited
from duologue.engines.ports import WorkClass
from duologue.hosts.port import Slot
from duologue.hosts.request_slots import RequestSlots
from duologue.sessions.owners import Owner
from duologue.telemetry import LabelSets, Metrics


class Work:
    """A request that holds a slot until it is told to end."""

    def __init__(self, slots: RequestSlots, wait_s: float = 0.0) -> None:
        self.begun = False
        self.end = asyncio.Event()
        self._slots = slots
        self._wait_s = wait_s

    async def run(self) -> None:
        async with self._slots.taken(Slot(wait_s=self._wait_s)):
            self.begun = True
            await self.end.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_without_a_wish_to_wait_one_too_many_is_refused() -> None:
    slots = RequestSlots(1, queue=5)
    async with slots.taken(Slot(wait_s=0)):
        assert slots.fill == 1
        with pytest.raises(CapacityError, match="the limit is 1"):
            await Work(slots).run()
    async with slots.taken(Slot(wait_s=0)):
        pass


async def test_who_has_waited_longest_is_next_and_nobody_overtakes() -> None:
    slots = RequestSlots(1, queue=2)
    first, second, third = works = [Work(slots, 10.0) for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work.run())
        await settle()
        assert [work.begun for work in works] == [True, False, False]
        with pytest.raises(CapacityError):
            await Work(slots, 10.0).run()  # the queue is full
        first.end.set()
        with pytest.raises(CapacityError):
            await Work(slots).run()  # the slot is somebody's already
        await settle()
        assert [work.begun for work in works] == [True, True, False]
        second.end.set()
        third.end.set()
    assert slots.fill == 0


async def test_who_waits_in_vain_is_refused_and_takes_no_slot_along() -> None:
    slots = RequestSlots(1, queue=2)
    work = Work(slots)
    async with asyncio.TaskGroup() as group:
        group.create_task(work.run())
        await settle()
        with pytest.raises(CapacityError):
            await Work(slots, 0.01).run()
        leaver = group.create_task(Work(slots, 10.0).run())
        await settle()
        leaver.cancel()
        await settle()
        work.end.set()
    assert slots.fill == 0


async def test_a_slot_handed_over_to_one_that_is_just_leaving_is_given_on() -> None:
    slots = RequestSlots(1, queue=2)
    work, last = Work(slots), Work(slots, 10.0)
    async with asyncio.TaskGroup() as group:
        group.create_task(work.run())
        await settle()
        leaver = group.create_task(Work(slots, 10.0).run())
        group.create_task(last.run())
        await settle()
        work.end.set()
        leaver.cancel()
        await settle()
        assert last.begun
        last.end.set()
    assert slots.fill == 0


async def test_a_class_finds_what_is_kept_for_it_and_a_key_has_its_limit() -> None:
    metrics = Metrics(LabelSets(keys=("mine",)))
    slots = RequestSlots(
        4, queue=0, weights={WorkClass.INTERACTIVE: 1, WorkClass.BATCH: 1}, metrics=metrics
    )
    mine = Owner("mine", max_requests=1)
    picture, talk = Slot(wait_s=0, work=WorkClass.BATCH), Slot(wait_s=0, owner=mine)
    tickets = [await slots.take(picture) for _ in range(3)]
    with pytest.raises(CapacityError, match="kept for other classes"):
        await slots.take(picture)
    async with slots.taken(talk):
        with pytest.raises(RateLimited, match="its limit is 1"):
            await slots.take(talk)
        active, waiting = metrics.class_active, metrics.class_waiting
        assert (active["batch"].value, active["interactive"].value) == (3, 1)
        assert waiting["batch"].value == 0
    refused = metrics.class_refused
    assert (refused["batch"].value, refused["interactive"].value) == (1, 1)
    assert metrics.key_refused["mine"].value == 1
    for ticket in tickets:
        slots.give_back(ticket)
    assert slots.fill == 0


async def test_a_job_waits_however_long_and_outside_of_the_queue() -> None:
    slots = RequestSlots(1, queue=0)
    ticket = await slots.take(Slot(wait_s=0))
    begun, end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with slots.taken_by_job("somebody"):
            begun.set()
            await end.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        await settle()
        assert (slots.waiting, begun.is_set()) == (1, False)
        slots.give_back(ticket)
        await settle()
        assert begun.is_set()
        end.set()
    assert slots.fill == 0
