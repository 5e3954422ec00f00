from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines import framing
from duologue.engines.messages import (
    Died,
    FromWorker,
    JobEnded,
    JobOutput,
    Open,
    Ready,
    Report,
    Stop,
    WorkerSpec,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Outcome
from duologue.engines.worker import WORKER_CRASHED, make_worker, serve

SCRIPT = WorkerSpec(name="stage/0", runner="script")


class Dying:
    """A worker that dies of one exception."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def run(self) -> None:
        raise self._error


def last_words(error: Exception) -> list[FromWorker]:
    reports: list[Report] = []
    serve(Dying(error), reports.append)  # type: ignore[arg-type]
    (report,) = reports
    return report.messages


class TestServe:
    def test_a_worker_runs_in_the_thread_of_its_caller(self) -> None:
        reports: list[Report] = []
        worker = make_worker(SCRIPT, reports.append)
        worker.receive((Open("a", TextDelta("one")), Stop()))
        serve(worker, reports.append)
        messages = [message for report in reports for message in report.messages]
        assert isinstance(messages[0], Ready)
        assert messages[1:] == [JobEnded("a", Outcome.CANCELLED)]

    def test_an_error_of_ours_is_passed_on_as_it_is(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert last_words(EngineError("no room")) == [Died("stage_failed", "no room")]
        assert "Traceback" in capsys.readouterr().err

    def test_a_wrong_setting_needs_no_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert last_words(ConfigError("no such voice")) == [Died("invalid_config", "no such voice")]
        assert capsys.readouterr().err == ""

    def test_a_foreign_exception_is_passed_on_without_its_text(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (died,) = last_words(ValueError("somebody's secret"))
        assert isinstance(died, Died)
        assert died.code == WORKER_CRASHED
        assert died.reason.startswith("ValueError at test_worker.py:")
        assert "somebody's secret" in capsys.readouterr().err, "its traceback is in the output"


@contextmanager
def child(parent_pid: int | None = None) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(15)
    arguments = [str(theirs.fileno()), str(parent_pid or os.getpid())]
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-m", "duologue.engines.worker", *arguments],
            pass_fds=(theirs.fileno(),),
        ) as process,
    ):
        theirs.close()
        try:
            yield process, ours
        finally:
            process.kill()


def listen(link: socket.socket, reader: framing.FrameReader) -> list[FromWorker]:
    return [
        message
        for body in reader.feed(link.recv(65536))
        for message in framing.decode_report(body).messages
    ]


class TestProcess:
    def test_it_becomes_what_it_is_told_to_be_and_leaves_when_told(self) -> None:
        reader = framing.FrameReader()
        with child() as (process, link):
            link.sendall(framing.encode(SCRIPT))
            assert isinstance(listen(link, reader)[0], Ready)
            link.sendall(framing.encode_messages([Open("a", TextDelta("hi"))]))
            heard: list[FromWorker] = []
            while len(heard) < 2:
                heard += listen(link, reader)
            assert heard == [JobOutput("a", TextDelta("hi")), JobEnded("a", Outcome.COMPLETED)]
            link.sendall(framing.encode_messages([Stop()]))
            assert process.wait(15) == 0

    def test_what_it_is_and_what_it_shall_do_may_come_in_one_piece(self) -> None:
        reader = framing.FrameReader()
        with child() as (process, link):
            both = framing.encode(SCRIPT) + framing.encode_messages(
                [Open("a", TextDelta("hi")), Stop()]
            )
            link.sendall(both)
            heard: list[FromWorker] = []
            while len(heard) < 2:
                heard += listen(link, reader)
            assert process.wait(15) == 0

    def test_it_leaves_when_the_engine_is_gone(self) -> None:
        with child() as (process, link):
            link.sendall(framing.encode(SCRIPT))
            listen(link, framing.FrameReader())
            link.close()
            assert process.wait(15) == 0

    def test_it_leaves_when_the_engine_is_gone_before_it_was_told_anything(self) -> None:
        with child() as (process, link):
            link.close()
            assert process.wait(15) == 0

    def test_it_does_not_begin_for_an_engine_that_is_dead_already(self) -> None:
        with child(parent_pid=1_999_999_999) as (process, _link):
            assert process.wait(15) == 0

    def test_it_does_not_stay_deaf_when_it_cannot_understand(self) -> None:
        with child() as (process, link):
            link.sendall(framing.encode(SCRIPT))
            listen(link, framing.FrameReader())
            link.sendall(b"\x03\x00\x00\x00\xc1\xc1\xc1")
            assert process.wait(15) == 1

    def test_the_system_kills_it_with_its_parent_even_if_a_step_hangs(self) -> None:
        """A middle process starts it, makes it hang, and is killed."""
        middle = textwrap.dedent(
            """
            import os, socket, subprocess, sys
            from duologue.engines import framing
            from duologue.engines.messages import Open, WorkerSpec
            from duologue.engines.payloads import TextDelta
            ours, theirs = socket.socketpair()
            # An inherited copy of our end, so that the child never sees the link close.
            os.set_inheritable(ours.fileno(), True)
            child = subprocess.Popen(
                [sys.executable, "-m", "duologue.engines.worker",
                 str(theirs.fileno()), str(os.getpid())],
                pass_fds=(ours.fileno(), theirs.fileno()),
            )
            spec = WorkerSpec(name="s/0", runner="script", settings={"fault": {"kind": "hang"}})
            ours.sendall(framing.encode(spec))
            ours.recv(65536)
            ours.sendall(framing.encode_messages([Open("a", TextDelta("one"))]))
            print(child.pid, flush=True)
            sys.stdin.read()
            """
        )
        with subprocess.Popen(
            [sys.executable, "-c", middle], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as parent:
            assert parent.stdout is not None
            handle = os.pidfd_open(int(parent.stdout.readline()))
            try:
                parent.send_signal(signal.SIGKILL)
                parent.wait(15)
                assert exited(handle)
            finally:
                os.close(handle)


def exited(handle: int) -> bool:
    ended, _, _ = select.select([handle], [], [], 10)
    return bool(ended)
