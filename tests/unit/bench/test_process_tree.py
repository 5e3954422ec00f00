from __future__ import annotations

import os
import subprocess
import sys

import process_tree


def test_a_child_belongs_to_the_tree_and_its_memory_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in process_tree.pids(os.getpid())
        whole, alone = (process_tree.resident_kib(pid) for pid in (os.getpid(), child.pid))
        assert 0 < alone < whole
        child.communicate(b"\n")


def test_cpu_time_grows_with_work_and_not_with_waiting() -> None:
    before = process_tree.cpu_s(os.getpid())
    sum(range(3_000_000))
    assert process_tree.cpu_s(os.getpid()) - before > 0.01


def test_a_process_that_is_gone_costs_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert process_tree.cpu_s(child.pid) == 0
    assert process_tree.resident_kib(child.pid) == 0
