from __future__ import annotations

import asyncio
import os
import select
import sys
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
    hasty = tmp_path / "python"
    hasty.write_text(
        f"#!{sys.executable} -S\nimport os, sys\nos.write(int(sys.argv[5]), {said!r})\n"
    )
    hasty.chmod(0o755)
    before = children()
    ear = Ear()
    start = asyncio.create_task(ProcessExecutor().start(spec(interpreter=str(hasty)), ear))
    # Looked at once: it may be gone, and waited for, the next time.
    while not (born := children() - before):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert all_exit(born)
    while not start.done():
        assert ear.reports == []
        assert ear.losses == []
        await asyncio.sleep(0)
    assert ear.reports == []
    await ear.ready()
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
