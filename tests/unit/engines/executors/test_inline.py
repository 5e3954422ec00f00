from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from duologue.engines.executors.inline import MAX_WAITING_REPORTS, InlineExecutor
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import JobOutput, Open, Report, WorkerSpec
from duologue.engines.payloads import TextDelta
from tests.fakes.copying_runner import installed
from tests.patience import PATIENCE_S
from tests.unit.engines.executors.kinds import Ear, spec, stop


async def test_the_worker_is_a_thread_with_its_name() -> None:
    ear = Ear()
    worker = await InlineExecutor().start(spec(name="speech/3"), ear)
    await ear.ready()
    assert "speech/3" in {thread.name for thread in threading.enumerate()}
    await stop(worker, ear)


async def test_a_payload_is_handed_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    image = ImageData(bytes(2**20), "png", 8, 8)
    ear = Ear()
    worker = await InlineExecutor().start(spec("copying"), ear)
    await ear.ready()
    worker.send(Open("a", image))
    await ear.ended("a")
    (output,) = [each for each in ear.of("a") if isinstance(each, JobOutput)]
    assert output.payload is image
    await stop(worker, ear)


async def test_reports_that_gather_while_the_loop_is_busy_come_in_order() -> None:
    ear = Ear()
    worker = await InlineExecutor().start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta(" ".join(str(number) for number in range(2000)))))
    await ear.until(lambda: len(ear.of("a")) == 2001)
    assert ear.text("a").split() == [str(number) for number in range(2000)]
    await stop(worker, ear)


async def test_a_worker_whose_reports_nobody_takes_steps_no_further() -> None:
    words = [str(number) for number in range(2 * MAX_WAITING_REPORTS)]
    ear = Ear()
    worker = await InlineExecutor().start(spec(), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta(" ".join(words))))
    await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while worker._room.is_set() and time.monotonic() < deadline:
        pass  # the loop takes nothing meanwhile
    assert len(worker._reports) == MAX_WAITING_REPORTS
    await ear.until(lambda: len(ear.of("a")) == len(words) + 1)
    assert ear.text("a").split() == words
    await stop(worker, ear)


async def test_a_worker_that_waits_for_the_loop_can_be_abandoned() -> None:
    ear = Ear()
    worker = await InlineExecutor().start(spec(name="waits/0"), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("x " * 2 * MAX_WAITING_REPORTS)))
    await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while worker._room.is_set() and time.monotonic() < deadline:
        pass
    worker.kill()
    for thread in threading.enumerate():
        if thread.name == "waits/0":
            thread.join(timeout=PATIENCE_S)
            assert not thread.is_alive()
    assert (await ear.lost()).reason == "the worker was abandoned"


def test_a_worker_that_outlives_its_loop_harms_nobody() -> None:
    class Silent:
        def on_report(self, report: Report) -> None: ...

        def on_lost(self, loss: object) -> None: ...

    async def leave_one_behind() -> None:
        worker = await InlineExecutor().start(WorkerSpec(name="left/0", runner="script"), Silent())
        worker.send(Open("a", TextDelta("one two three")))
        worker.kill()

    asyncio.run(leave_one_behind())
    for thread in threading.enumerate():
        if thread.name == "left/0":
            thread.join(timeout=PATIENCE_S)
            assert not thread.is_alive()
