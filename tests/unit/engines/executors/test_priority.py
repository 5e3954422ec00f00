from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from duologue.engines.executors.priority import NICENESS, fewer_threads

YIELD = """
import os, pathlib, sys, threading
from duologue.engines.executors.priority import yield_cores
over = threading.Event()
other = threading.Thread(target=over.wait)
other.start()
yield_cores(pathlib.Path(sys.argv[1]))
print({os.getpriority(os.PRIO_PROCESS, each) for each in (0, other.native_id)})
over.set()
"""
NICE = str({NICENESS})


def told(session: Path) -> str:
    """Let a process with two threads yield the cores; returns how nice they say they are."""
    command = [sys.executable, "-c", YIELD, str(session)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return said.stdout.splitlines()[-1]


def test_a_process_with_its_threads_and_its_session_comes_after_others(tmp_path: Path) -> None:
    session = tmp_path / "autogroup"
    session.write_text("/autogroup-9 nice 0")
    assert told(session) == NICE
    assert session.read_text() == str(NICENESS)


def test_where_sessions_do_not_count_nothing_is_written(tmp_path: Path) -> None:
    assert told(tmp_path / "autogroup") == NICE
    assert list(tmp_path.iterdir()) == []


def test_a_session_whose_priority_cannot_be_changed_keeps_it(tmp_path: Path) -> None:
    assert told(tmp_path) == NICE, "a folder, to which nothing can be written"


def test_one_core_is_left_for_calls() -> None:
    assert fewer_threads() == {"OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) - 1))}
