from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from pathlib import Path

import pytest
import uvloop
from structlog.testing import capture_logs

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.executors.process import QUIET_THREADS, ProcessExecutor, ProcessWorker
from duologue.engines.messages import Append, Finish, JobEnded, JobTaken, Open, Ready, Report
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Outcome, WorkClass
from duologue.engines.worker_log import MARK
from tests.unit.engines.executors.executor_contract import Ear, ExecutorContract, spec, stop


def environment_of(worker: ProcessWorker) -> dict[str, str]:
    raw = Path(f"/proc/{worker.pid}/environ").read_bytes().decode()
    return dict(entry.split("=", 1) for entry in raw.split("\0") if "=" in entry)


class TestProcessExecutor(ExecutorContract):
    @pytest.fixture
    def executor(self) -> ProcessExecutor:
        return ProcessExecutor()

    async def test_the_environment_is_set_before_anything_is_loaded(
        self, executor: ProcessExecutor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(env={"MINE": "1", "OMP_WAIT_POLICY": "ACTIVE"}), ear)
        await ear.ready()
        found = environment_of(worker)
        assert (found["MINE"], found["OMP_WAIT_POLICY"]) == ("1", "ACTIVE")
        assert found["GOMP_SPINCOUNT"] == QUIET_THREADS["GOMP_SPINCOUNT"]
        await stop(worker, ear)

    async def test_what_a_worker_logs_is_logged_and_what_libraries_print_is_not(
        self, executor: ProcessExecutor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        with capture_logs() as logs:
            worker.printed(MARK + '{"event": "model_loading", "percent": 10}')
            worker.printed("somebody said this")
        says, printed = logs
        assert (says["event"], says["what"]) == ("worker_says", "model_loading")
        assert (says["worker"], says["percent"]) == (worker.name, 10)
        assert printed == {
            "event": "worker_output",
            "log_level": "debug",
            "worker": worker.name,
            "pii.line": "somebody said this",
        }
        await stop(worker, ear)

    async def test_batch_work_is_nice_to_the_rest(self, executor: ProcessExecutor) -> None:
        ear = Ear()
        worker = await executor.start(spec(work_class=WorkClass.BATCH), ear)
        await ear.ready()
        niceness = os.getpriority(os.PRIO_PROCESS, worker.pid or 0)
        assert niceness == os.getpriority(os.PRIO_PROCESS, 0) + 10
        await stop(worker, ear)

    async def test_a_process_that_dies_is_lost_with_its_status(
        self, executor: ProcessExecutor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSEGV)
        loss = await ear.lost()
        assert loss.code == "replica_lost"
        assert f"status {-signal.SIGSEGV}" in loss.reason

    async def test_an_interpreter_that_is_not_there_is_an_error(
        self, executor: ProcessExecutor
    ) -> None:
        with pytest.raises(EngineError, match=r"stage/0 cannot be started.*/nowhere/python"):
            await executor.start(spec(interpreter="/nowhere/python"), Ear())

    async def test_an_interpreter_without_duologue_is_lost_with_what_it_said(
        self, executor: ProcessExecutor, tmp_path: Path
    ) -> None:
        fake = tmp_path / "python"
        fake.write_text("#!/bin/sh\necho 'No module named duologue' >&2\nexit 3\n")
        fake.chmod(0o755)
        ear = Ear()
        await executor.start(spec(interpreter=str(fake)), ear)
        loss = await ear.lost()
        assert "status 3" in loss.reason
        assert "No module named duologue" in loss.reason

    async def test_a_worker_that_reads_nothing_is_lost_after_a_while(self) -> None:
        executor = ProcessExecutor(stall_s=0.1)
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)  # noqa: ASYNC222
        worker.send(Open("a", input_ended=False))
        worker.send(Append("a", AudioChunk(bytes(2**20), 16_000)))
        loss = await ear.lost()
        assert "does not read" in loss.reason
        assert "0.1 s" in loss.reason

    async def test_a_worker_that_reads_on_is_kept_however_much_waits(self) -> None:
        executor = ProcessExecutor(stall_s=5)
        ear = Ear()
        worker = await executor.start(spec("energy_vad", settings={"window_ms": 40}), ear)
        await ear.ready()
        worker.send(Open("a", input_ended=False))
        for number in range(24):
            worker.send(Append("a", AudioChunk(bytes(2**20), 16_000, number * 2**19)))
        worker.send(Finish("a"))
        worker.send(Open("b", AudioChunk(bytes(32_000), 16_000)))
        await ear.until(lambda: len([e for e in ear.messages if isinstance(e, JobEnded)]) == 2)
        assert ear.of("a")[-1] == JobEnded("a", Outcome.COMPLETED)
        assert ear.of("b")[-1] == JobEnded("b", Outcome.COMPLETED)
        taken = [each for each in ear.messages if isinstance(each, JobTaken) and each.job == "a"]
        assert sum(each.count for each in taken) == 24
        await stop(worker, ear)

    async def test_signals_to_the_group_leave_the_decision_to_the_engine(
        self, executor: ProcessExecutor
    ) -> None:
        ear = Ear()
        worker = await executor.start(spec(), ear)
        await ear.ready()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGINT)
        os.kill(worker.pid, signal.SIGTERM)
        worker.send(Open("a", TextDelta("alive")))
        await ear.until(lambda: len(ear.of("a")) == 2)
        await stop(worker, ear)

    async def test_nothing_is_heard_of_a_worker_before_its_start_has_returned(
        self, executor: ProcessExecutor, tmp_path: Path
    ) -> None:
        """Also if the loop is busy for so long that the worker is ready, and gone, before that."""
        said = framing.encode(Report([Ready(took_s=0.0)]))
        hasty = tmp_path / "python"
        hasty.write_text(
            f"#!{sys.executable} -S\nimport os, sys\nos.write(int(sys.argv[5]), {said!r})\n"
        )
        hasty.chmod(0o755)
        before = children()
        ear = Ear()
        start = asyncio.create_task(executor.start(spec(interpreter=str(hasty)), ear))
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

    @pytest.mark.parametrize("turns", range(0, 12, 2))
    async def test_a_start_that_is_given_up_leaves_no_process(
        self, executor: ProcessExecutor, turns: int
    ) -> None:
        before = children()
        ear = Ear()
        async with asyncio.TaskGroup() as group:
            start = group.create_task(executor.start(spec(), ear))
            for _ in range(turns):
                await asyncio.sleep(0)
            start.cancel()
        if not start.cancelled():  # it was faster
            start.result().kill()
            await ear.lost()
        assert await asyncio.to_thread(all_exit, children() - before)


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
