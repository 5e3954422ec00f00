from __future__ import annotations

import asyncio
import gc
import os
import select
import sys
import weakref
from contextlib import suppress
from pathlib import Path

import uvloop

from duologue.engines import framing
from duologue.engines.executors.process import ProcessExecutor
from duologue.engines.messages import Open, Ready, Report
from duologue.engines.payloads import TextDelta
from tests.unit.engines.executors.kinds import Ear, spec


async def test_nothing_is_heard_of_a_worker_before_its_start_has_returned(tmp_path: Path) -> None:
    """Also if the loop is busy for so long that the worker is ready, and gone, before that."""
    said = framing.encode(Report([Ready(took_s=0.0)]))
    hasty, over = tmp_path / "python", tmp_path / "over"
    hasty.write_text(
        f"#!{sys.executable} -S\nimport os, sys\nos.write(int(sys.argv[5]), {said!r})\n"
        f"os.mkdir({str(over)!r})\n"
    )
    hasty.chmod(0o755)
    before = children()
    ear = Ear()
    start = asyncio.create_task(ProcessExecutor().start(spec(interpreter=str(hasty)), ear))
    # Looked at once: it may be gone, and waited for, the next time, and even between two looks.
    while not (born := children() - before) and not over.exists():  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert all_exit(born)
    while not start.done():
        assert ear.reports == []
        assert ear.losses == []
        await asyncio.sleep(0)
    assert ear.reports == []
    await ear.until(lambda: bool(ear.messages))
    assert isinstance(ear.messages[0], Ready)
    await ear.lost()


def children() -> set[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in listed.split()}


def all_exit(pids: set[int]) -> bool:
    """Wait until the processes have ended."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ended, _, _ = select.select([handle], [], [], 10)
        finally:
            os.close(handle)
        if not ended:
            return False
    return True


def test_it_works_on_uvloop_as_well() -> None:
    async def answer() -> str:
        ear = Ear()
        worker = await ProcessExecutor().start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("one two")))
        await ear.until(lambda: len(ear.of("a")) == 3)
        worker.kill()
        assert (await ear.lost()).reason == "it was killed by the engine"
        return ear.text("a")

    assert uvloop.run(answer()) == "one two"


def shared_memory_of(pid: int) -> set[bool]:
    """For the descriptors of the slab that a process has: whether what it starts gets none."""
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # a file that was open for a moment
            if "duologue-slab" in os.readlink(fd):
                flags = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text().split()[3]
                found.add(bool(int(flags, 8) & os.O_CLOEXEC))
    return found


async def test_the_shared_memory_is_open_to_workers_alone_and_to_none_that_shall_not_see_it() -> (
    None
):
    executor, pids = ProcessExecutor(), []
    workers, ears = [], []
    for slab_bytes in (1 << 20, 0):
        before = children()
        ears.append(Ear())
        workers.append(await executor.start(spec(slab_bytes=slab_bytes), ears[-1]))
        await ears[-1].ready()
        pids += children() - before
    seated, apart = pids
    assert shared_memory_of(seated) == {True}
    assert shared_memory_of(apart) == set()
    assert shared_memory_of(os.getpid()) == {True}
    for worker, ear in zip(workers, ears, strict=True):
        worker.kill()
        await ear.lost()
    assert shared_memory_of(os.getpid()) == set()


async def nothing_waits_for_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        ear = Ear()
        worker = await ProcessExecutor().start(spec(), ear)
        await ear.ready()
        worker.send(Open("a", TextDelta("one two")))
        await ear.ended("a")
        worker.kill()
        await ear.lost()
        gone = weakref.ref(worker)
        del worker, ear
        async with asyncio.timeout(10):
            while gone() is not None:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0)
    finally:
        gc.enable()


async def test_a_lost_worker_leaves_no_circle_behind() -> None:
    await nothing_waits_for_the_collector()


def test_nor_does_it_on_uvloop() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(nothing_waits_for_the_collector())
