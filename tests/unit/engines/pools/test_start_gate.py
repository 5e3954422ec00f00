from __future__ import annotations

import asyncio

import pytest

from duologue.engines.pools.start_gate import StartGate, available_bytes


class Starts:
    """Starts that go on until they are let end."""

    def __init__(self, gate: StartGate) -> None:
        self.gate = gate
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def start(self, name: str) -> None:
        async with self.gate.turn():
            self.begun.append(name)
            await self.ends.setdefault(name, asyncio.Event()).wait()

    def end(self, name: str) -> None:
        self.ends.setdefault(name, asyncio.Event()).set()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def run(gate: StartGate, *names: str) -> tuple[Starts, dict[str, asyncio.Task[None]]]:
    starts = Starts(gate)
    tasks = {name: asyncio.create_task(starts.start(name)) for name in names}
    await settle()
    return starts, tasks


async def test_all_start_side_by_side_unless_there_is_a_limit() -> None:
    starts, tasks = await run(StartGate(), "a", "b", "c")
    assert starts.begun == ["a", "b", "c"]
    for name in tasks:
        starts.end(name)
    await asyncio.gather(*tasks.values())


async def test_within_a_limit_they_start_in_turn() -> None:
    starts, tasks = await run(StartGate(limit=2), "a", "b", "c", "d")
    assert starts.begun == ["a", "b"]
    starts.end("b")
    await settle()
    assert starts.begun == ["a", "b", "c"]
    for name in tasks:
        starts.end(name)
    await asyncio.gather(*tasks.values())
    assert starts.begun == ["a", "b", "c", "d"]


async def test_one_at_a_time_while_memory_is_short_and_never_none() -> None:
    free = 10
    gate = StartGate(min_free_bytes=100, available=lambda: free)
    starts, tasks = await run(gate, "a", "b", "c", "d")
    assert starts.begun == ["a"]
    starts.end("a")
    await settle()
    assert starts.begun == ["a", "b"]
    free = 1000
    starts.end("b")
    await settle()
    assert starts.begun == ["a", "b", "c", "d"]
    for name in tasks:
        starts.end(name)
    await asyncio.gather(*tasks.values())


async def test_who_gives_up_keeps_nobody_waiting() -> None:
    starts, tasks = await run(StartGate(limit=1), "a", "b", "c")
    tasks["b"].cancel()
    await settle()
    tasks["a"].cancel()
    await settle()
    assert starts.begun == ["a", "c"]
    starts.end("c")
    await tasks["c"]
    for name in ("a", "b"):
        with pytest.raises(asyncio.CancelledError):
            await tasks[name]


def test_this_machine_says_what_it_has() -> None:
    available = available_bytes()
    assert available is None or available > 2**20
