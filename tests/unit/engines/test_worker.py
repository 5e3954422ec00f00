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

from duologue.engines import framing
from duologue.engines.messages import (
    Begun,
    FromWorker,
    JobEnded,
    JobOutput,
    Open,
    Ready,
    Stop,
    WorkerSpec,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Outcome
from tests.patience import PATIENCE_S

SCRIPT = WorkerSpec(name="stage/0", runner="script")


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
            heard: list[FromWorker] = []
            while not any(isinstance(each, Ready) for each in heard):
                heard += listen(link, reader)
            assert heard[0] == Begun("import")
            link.sendall(framing.encode_messages([Open("a", TextDelta("hi"))]))
            heard = []
            while len(heard) < 2:
                heard += listen(link, reader)
            assert heard == [JobOutput("a", TextDelta("hi")), JobEnded("a", Outcome.COMPLETED)]
            link.sendall(framing.encode_messages([Stop()]))
            assert process.wait(PATIENCE_S) == 0

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
            assert process.wait(PATIENCE_S) == 0

    def test_it_leaves_when_the_engine_is_gone(self) -> None:
        with child() as (process, link):
            link.sendall(framing.encode(SCRIPT))
            listen(link, framing.FrameReader())
            link.close()
            assert process.wait(PATIENCE_S) == 0

    def test_it_leaves_when_the_engine_is_gone_before_it_was_told_anything(self) -> None:
        with child() as (process, link):
            link.close()
            assert process.wait(PATIENCE_S) == 0

    def test_it_does_not_begin_for_an_engine_that_is_dead_already(self) -> None:
        with child(parent_pid=1_999_999_999) as (process, _link):
            assert process.wait(PATIENCE_S) == 0

    def test_it_does_not_stay_deaf_when_it_cannot_understand(self) -> None:
        with child() as (process, link):
            link.sendall(framing.encode(SCRIPT))
            listen(link, framing.FrameReader())
            link.sendall(b"\x03\x00\x00\x00\xc1\xc1\xc1")
            assert process.wait(PATIENCE_S) == 1

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
                parent.wait(PATIENCE_S)
                assert exited(handle)
            finally:
                os.close(handle)


def exited(handle: int) -> bool:
    ended, _, _ = select.select([handle], [], [], 10)
    return bool(ended)
