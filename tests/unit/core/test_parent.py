from __future__ import annotations

import os
import select
import subprocess
import sys

CHILD = """
import os, sys, threading
from duologue.core.parent import die_with_parent
die_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
threading.Event().wait()
"""
PARENT = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1], str(os.getpid())])
"""


def test_it_dies_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = os.pidfd_open(int(parent.stdout.readline()))
    try:
        parent.kill()
        assert select.select([child], [], [], 15)[0] == [child]
    finally:
        os.close(child)
        parent.stdout.close()
        parent.wait()


def test_one_whose_parent_is_gone_already_leaves_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, "1"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
