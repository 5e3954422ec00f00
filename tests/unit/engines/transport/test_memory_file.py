from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from duologue.engines.transport.memory_file import PAGE_BYTES, MemoryFile, is_available
from tests.patience import PATIENCE_S


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_linux_has_such_memory() -> None:
    assert is_available()


def test_it_grows_by_whole_pages_and_never_shrinks() -> None:
    memory = MemoryFile.create("test")
    assert memory.grow(1) == 0
    assert memory.grow(PAGE_BYTES + 1) == PAGE_BYTES
    assert memory.size_bytes == 3 * PAGE_BYTES
    with pytest.raises(PermissionError):
        os.ftruncate(memory.fd, 0)


def test_two_who_map_it_see_the_same_and_one_of_them_cannot_write() -> None:
    memory = MemoryFile.create("test")
    memory.grow(PAGE_BYTES)
    with (
        memory.map(0, PAGE_BYTES, writable=True) as ours,
        memory.map(0, PAGE_BYTES, writable=False) as theirs,
    ):
        ours[:5] = b"hello"
        assert theirs[:5] == b"hello"
        with pytest.raises(TypeError):
            theirs[0] = 0


@pytest.mark.parametrize(("start", "size"), [(0, 0), (-1, 1), (0, 2 * PAGE_BYTES), (1, 1)])
def test_parts_that_do_not_exist_are_refused(start: int, size: int) -> None:
    memory = MemoryFile.create("test")
    memory.grow(PAGE_BYTES)
    with pytest.raises((ValueError, OSError)):
        memory.map(start, size, writable=True)


def test_memory_that_nobody_wrote_is_not_taken_and_can_be_given_back() -> None:
    memory = MemoryFile.create("test")
    memory.grow(1024 * PAGE_BYTES)
    assert memory.resident_bytes == 0
    with memory.map(0, 1024 * PAGE_BYTES, writable=True) as part:
        part[: 8 * PAGE_BYTES] = bytes(8 * PAGE_BYTES)
        assert memory.resident_bytes == 8 * PAGE_BYTES
        memory.discard(0, 1024 * PAGE_BYTES)
        assert memory.resident_bytes == 0


def test_a_descriptor_goes_with_its_object() -> None:
    before = descriptors()
    memory = MemoryFile.create("test")
    assert descriptors() == before + 1
    del memory
    gc.collect()
    assert descriptors() == before
    other = MemoryFile.create("test")
    other.close()
    other.close()
    assert descriptors() == before


HOLDER = """
import os, signal, socket, sys
from duologue.engines.transport.memory_file import MemoryFile
link = socket.socket(fileno=int(sys.argv[1]))
memory = MemoryFile.create("left behind?")
memory.grow(64 * 2**20)
part = memory.map(0, 64 * 2**20, writable=True)
part.write(b"x" * 64 * 2**20)
socket.send_fds(link, [b"x"], [memory.fd])
os.kill(os.getpid(), signal.SIGKILL)
"""


def mentions_of(memory_name: str) -> int:
    """How often this process has such a memory, open or mapped."""
    mapped = Path("/proc/self/maps").read_text().count(f"memfd:{memory_name}")
    links = (Path(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
    return mapped + sum(memory_name in os.readlink(link) for link in links if link.is_symlink())


def test_it_outlives_its_maker_that_was_killed_and_then_nothing_is_left() -> None:
    ours = descriptors()
    here, there = socket.socketpair()
    with here, there:
        child = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(there.fileno())], pass_fds=(there.fileno(),)
        )
        _, fds, _, _ = socket.recv_fds(here, 1, 1)
        assert child.wait(PATIENCE_S) == -signal.SIGKILL
    memory = MemoryFile(fds[0])
    with memory.map(0, memory.size_bytes, writable=False) as part:
        assert part[-1:] == b"x"
    assert memory.resident_bytes == 64 * 2**20
    # It lives as long as somebody has it, and nobody but its maker and this process ever had.
    assert os.fstat(memory.fd).st_nlink == 0
    assert mentions_of("left behind?") == 1
    memory.close()
    assert mentions_of("left behind?") == 0
    assert descriptors() == ours
