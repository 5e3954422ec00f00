from __future__ import annotations

import asyncio

import pytest

from duologue.core.errors import CapacityError
from duologue.hosts.held_slot import HostSlots, held_slot
from duologue.hosts.port import Slot
from duologue.hosts.request_slots import RequestSlots
from duologue.sessions.port import Joined
from tests.fakes.link import FakeClient, FakeLink


async def test_a_slot_is_given_back_once_however_it_is_let_go() -> None:
    slots = RequestSlots(2, queue=0)
    first, second = [await held_slot(slots, Slot(wait_s=0)) for _ in range(2)]
    assert slots.fill == 1
    with pytest.raises(CapacityError):
        await held_slot(slots, Slot(wait_s=0))
    client = FakeClient(first)
    first.attach(client)
    client.on_output()
    assert client.got == []
    first.detach(client)
    first.close("closed")
    assert slots.fill == 0.5
    second.close("closed")
    assert slots.fill == 0


async def test_whoever_waits_at_another_gateway_is_next() -> None:
    slots = RequestSlots(1, queue=1)
    async with asyncio.TaskGroup() as group:
        link = FakeLink(group)

        async def take(wanted: Slot) -> Joined:
            link.host_server.later = lambda: held_slot(slots, wanted)
            return await link.edge.open(wanted)

        async def settle() -> None:
            for _ in range(6):
                link.settle()
                await asyncio.sleep(0)

        remote = HostSlots(take)
        held = asyncio.Event()
        let_go = asyncio.Event()

        async def work(wait_s: float) -> None:
            async with remote.taken(Slot(wait_s=wait_s)):
                held.set()
                await let_go.wait()

        first = group.create_task(work(0))
        await settle()
        assert held.is_set()
        held.clear()
        second = group.create_task(work(60))
        await settle()
        leaver = asyncio.create_task(work(60))
        await settle()
        with pytest.raises(CapacityError):
            await leaver  # the queue is full
        first.cancel()
        await settle()
        assert held.is_set()
        waiting = asyncio.create_task(work(60))
        await settle()
        waiting.cancel()
        await settle()
        let_go.set()
        await settle()
        assert second.done()
        assert slots.fill == 0
        async with slots.taken(Slot(wait_s=0)):
            assert slots.fill == 1


async def test_a_gateway_that_is_lost_leaves_its_slots() -> None:
    slots = RequestSlots(1, queue=1)
    async with asyncio.TaskGroup() as group:
        link = FakeLink(group)
        link.host_server.later = lambda: held_slot(slots, Slot(wait_s=60))
        for _ in range(2):
            link.edge.begin(Slot(wait_s=60))
        for _ in range(4):
            link.settle()
            await asyncio.sleep(0)
        assert slots.fill == 1
        link.host.lost()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert slots.fill == 0


async def test_whoever_holds_a_slot_is_told_when_its_host_is_lost() -> None:
    slots = RequestSlots(1, queue=0)
    async with asyncio.TaskGroup() as group:
        link = FakeLink(group)
        link.host_server.later = lambda: held_slot(slots, Slot(wait_s=0))
        remote = HostSlots(link.edge.open)
        lost: list[str] = []
        let_go = asyncio.Event()

        async def work() -> None:
            async with remote.taken(Slot(wait_s=0), lambda: lost.append("lost")):
                await let_go.wait()

        async def settle() -> None:
            for _ in range(6):
                link.settle()
                await asyncio.sleep(0)

        for _ in range(2):
            working = group.create_task(work())
            await settle()
            assert slots.fill == 1
            let_go.set()
            await settle()
            assert working.done()
            assert (slots.fill, lost) == (0, [])
            let_go.clear()
        group.create_task(work())
        await settle()
        link.edge.lost()
        assert lost == ["lost"]
        let_go.set()
