from __future__ import annotations

import subprocess
import sys

from duologue.engines.worker_memory import give_back, held

MIB = 2**20


def test_memory_that_is_taken_and_given_back_is_seen() -> None:
    before = held().resident_bytes
    taken = bytearray(b"x" * (64 * MIB))
    during = held().resident_bytes
    del taken
    give_back()
    after = held().resident_bytes
    assert during - before > 48 * MIB
    assert during - after > 48 * MIB


def test_what_processes_of_a_worker_hold_counts() -> None:
    alone = held().resident_bytes
    code = "held = b'x' * (64 << 20); print('taken', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"taken\n"
        together = held().resident_bytes
        child.communicate(b"\n")
    assert together - alone > 48 * MIB


def test_without_a_gpu_no_device_holds_anything() -> None:
    assert held().device_bytes == 0
