"""What executors promise whose workers are processes, here or on another machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from duologue.core.errors import EngineError
from duologue.engines.executors.base import Executor
from duologue.engines.executors.linked import QUIET_THREADS
from duologue.engines.executors.priority import NICENESS
from duologue.engines.messages import Append, Open
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import WorkClass
from duologue.engines.worker_log import MARK
from tests.fakes.marked import Marked
from tests.patience import until
from tests.unit.engines.executors.kinds import Ear, open_files, spec, stop


@pytest.fixture
def executor(process_executor: Executor) -> Executor:
    return process_executor


@pytest.fixture
def marked() -> Marked:
    return Marked()


def script(path: Path, text: str) -> str:
    """Make an interpreter that does something of its own."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


async def test_the_environment_is_set_before_anything_is_loaded(
    executor: Executor, marked: Marked
) -> None:
    ear = Ear()
    env = {**marked.env, "MINE": "1", "OMP_WAIT_POLICY": "ACTIVE"}
    worker = await executor.start(spec(env=env), ear)
    await ear.ready()
    (found,) = marked.environments().values()
    assert (found["MINE"], found["OMP_WAIT_POLICY"]) == ("1", "ACTIVE")
    assert found["GOMP_SPINCOUNT"] == QUIET_THREADS["GOMP_SPINCOUNT"]
    await stop(worker, ear)


async def test_an_idle_worker_that_is_killed_is_lost_unasked(
    executor: Executor, marked: Marked
) -> None:
    ear = Ear()
    await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    os.kill(marked.pid(), signal.SIGKILL)
    loss = await ear.lost()
    assert loss.code == "replica_lost"
    assert f"status {-signal.SIGKILL}" in loss.reason


async def test_a_native_crash_is_lost_with_its_status(executor: Executor, marked: Marked) -> None:
    ear = Ear()
    worker = await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    worker.send(Open("a", TextDelta("word " * 1000), credit=1))
    await ear.until(lambda: bool(ear.of("a")))
    os.kill(marked.pid(), signal.SIGSEGV)
    assert f"status {-signal.SIGSEGV}" in (await ear.lost()).reason


@pytest.mark.parametrize("ending", ["stop", "kill", "SIGKILL", "hang"])
async def test_no_process_is_left_whichever_way_a_worker_ends(
    executor: Executor, marked: Marked, tmp_path: Path, ending: str
) -> None:
    """Nor one that it has started, which holds on to its link and its output."""
    sown = script(tmp_path / "python", f'sleep 1000 &\nexec {sys.executable} "$@"')
    ear = Ear()
    fault = {"fault": {"kind": "hang"}}
    worker = await executor.start(spec(env=marked.env, interpreter=sown, settings=fault), ear)
    await ear.ready()
    processes = marked.environments()
    assert len(processes) == 2
    match ending:
        case "stop":
            await stop(worker, ear)
        case "SIGKILL":
            for pid in processes:
                if "sleep" not in command_line(pid):
                    os.kill(pid, signal.SIGKILL)
        case "hang":
            worker.send(Open("a", TextDelta("one")))
            await asyncio.sleep(0)
            worker.kill()
        case _:
            worker.kill()
    await ear.lost()
    await marked.gone()


@pytest.mark.parametrize("turns", [0, 1, 3, 10, 100])
async def test_a_start_that_is_given_up_leaves_no_process(
    executor: Executor, marked: Marked, turns: int
) -> None:
    files = open_files()
    ear = Ear()
    async with asyncio.TaskGroup() as group:
        start = group.create_task(executor.start(spec(env=marked.env), ear))
        for _ in range(turns):
            await asyncio.sleep(0)
        start.cancel()
    if not start.cancelled():  # it was faster
        start.result().kill()
        await ear.lost()
    await executor.close()
    await marked.gone()
    await until(lambda: open_files() == files)


async def test_an_interpreter_that_is_not_there_is_named(executor: Executor) -> None:
    ear = Ear()
    with pytest.raises(EngineError, match=r"stage/0 cannot be started.*/nowhere/python"):
        await executor.start(spec(interpreter="/nowhere/python"), ear)
    assert ear.losses == []


async def test_an_interpreter_without_duologue_is_lost_with_what_it_said(
    executor: Executor, tmp_path: Path
) -> None:
    bare = script(tmp_path / "python", "echo 'No module named duologue' >&2; exit 3")
    ear = Ear()
    await executor.start(spec(interpreter=bare), ear)
    loss = await ear.lost()
    assert "status 3" in loss.reason
    assert "No module named duologue" in loss.reason


async def test_what_a_worker_logs_is_logged_and_what_libraries_print_is_not(
    executor: Executor, tmp_path: Path
) -> None:
    says = MARK + '{"event": "model_loading", "percent": 10}'
    talkative = script(
        tmp_path / "python",
        f"echo '{says}'; echo 'somebody said this' >&2; exec {sys.executable} \"$@\"",
    )
    ear = Ear()
    with capture_logs() as logs:
        worker = await executor.start(spec(interpreter=talkative), ear)
        await ear.ready()
        await stop(worker, ear)
    ours = {
        "event": "worker_says",
        "what": "model_loading",
        "worker": "stage/0",
        "percent": 10,
        "log_level": "info",
    }
    theirs = {
        "event": "worker_output",
        "log_level": "debug",
        "worker": "stage/0",
        "pii.line": "somebody said this",
    }
    assert ours in logs
    assert theirs in logs
    assert [each for each in logs if "somebody" in str(each)] == [theirs]


async def test_a_worker_comes_after_nobody(executor: Executor, marked: Marked) -> None:
    """Ray lets its actors come after everybody, and so what they start."""
    ear = Ear()
    worker = await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, marked.pid()) == own
    await stop(worker, ear)


async def test_batch_work_comes_after_others_once_it_is_ready(
    executor: Executor, marked: Marked
) -> None:
    ear = Ear()
    worker = await executor.start(spec(env=marked.env, work_class=WorkClass.BATCH), ear)
    await ear.ready()
    assert os.getpriority(os.PRIO_PROCESS, marked.pid()) == NICENESS
    await stop(worker, ear)


async def test_signals_leave_the_decision_to_the_engine(executor: Executor, marked: Marked) -> None:
    ear = Ear()
    worker = await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(marked.pid(), number)
    worker.send(Open("a", TextDelta("alive")))
    await ear.ended("a")
    await stop(worker, ear)


async def test_a_worker_that_reads_nothing_is_lost_after_a_while(
    executor: Executor, marked: Marked
) -> None:
    executor.stall_s = 0.1  # type: ignore[attr-defined]
    ear = Ear()
    worker = await executor.start(spec(env=marked.env), ear)
    await ear.ready()
    os.kill(marked.pid(), signal.SIGSTOP)
    worker.send(Open("a", input_ended=False))
    for number in range(16):
        worker.send(Append("a", AudioChunk(bytes(2**20), 16_000, number * 2**19)))
    loss = await ear.lost()
    assert "does not read" in loss.reason
    assert "0.1 s" in loss.reason
    await marked.gone()
