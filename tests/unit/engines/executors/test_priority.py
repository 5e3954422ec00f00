from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from duologue.engines.executors.priority import LAST, fewer_threads

COME_LAST = """
import os, pathlib, sys
from duologue.engines.executors.priority import come_last
come_last(pathlib.Path(sys.argv[1]))
print(os.sched_getscheduler(0) == os.SCHED_IDLE)
"""


def told(session: Path) -> str:
    """Let a process come last; returns whether it says so."""
    command = [sys.executable, "-c", COME_LAST, str(session)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return said.stdout.splitlines()[-1]


def test_a_process_and_its_session_come_after_all_others(tmp_path: Path) -> None:
    session = tmp_path / "autogroup"
    session.write_text("/autogroup-9 nice 0")
    assert told(session) == "True"
    assert session.read_text() == str(LAST)
    assert os.sched_getscheduler(0) != os.SCHED_IDLE


def test_where_sessions_do_not_count_nothing_is_written(tmp_path: Path) -> None:
    assert told(tmp_path / "autogroup") == "True"
    assert list(tmp_path.iterdir()) == []


def test_a_session_whose_priority_cannot_be_changed_keeps_it(tmp_path: Path) -> None:
    assert told(tmp_path) == "True", "a folder, to which nothing can be written"


def test_one_core_is_left_for_calls() -> None:
    assert fewer_threads() == {"OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) - 1))}
