from __future__ import annotations

import asyncio
import os
import socket
import sys

import pytest

from duologue.engines.executors.child import Child
from tests.fakes.marked import Marked
from tests.patience import PATIENCE_S

SAYS_WHAT_IT_WAS_GIVEN = """
import os, socket, sys
line = socket.socket(fileno=int(sys.argv[1]))
print(sys.argv[2], *sys.argv[3:], os.getsid(0) == os.getpid())
line.recv(1)
"""
WAITS = "import signal; signal.pause()"


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-u", "-c", text)


async def test_it_has_its_link_and_what_it_prints_is_heard() -> None:
    heard: list[str] = []
    child = Child(heard.append)
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            await child.start(python(SAYS_WHAT_IT_WAS_GIVEN), theirs, os.environ, ["--more"])
        assert child.runs
    async with asyncio.timeout(PATIENCE_S):
        await child.ended()
        while not heard:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert heard == [f"{os.getpid()} --more True"]
    assert not child.runs
    child.release()


async def test_one_that_is_killed_ends_and_may_be_killed_again() -> None:
    marked = Marked()
    child = Child(lambda _line: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        await child.start(python(WAITS), theirs, {**os.environ, **marked.env})
        child.kill()
        async with asyncio.timeout(PATIENCE_S):
            await child.ended()
        child.kill()
    child.release()
    child.kill()
    await marked.gone()


async def test_one_that_was_never_started_has_no_end_to_wait_for() -> None:
    child = Child(lambda _line: None)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(FileNotFoundError):
        await child.start(("/nowhere/python",), theirs, {})
    assert not child.runs
    child.kill()
    await child.ended()
    child.release()
