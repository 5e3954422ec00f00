"""A process that does not outlive the one that started it.

This module must not know what either does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Be killed when the parent dies, even while a native call holds the interpreter.

    Strictly, when the thread that started this process does.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before we could ask
        os._exit(0)
