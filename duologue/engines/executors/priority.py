"""Lets a worker's process run on what all others leave of the cores.

A worker leads a session of its own, and where the kernel shares the cores first between sessions
(autogroups, as most desktops and servers do), a process's nice value says nothing to processes of
other sessions: next to one of normal priority, one with a nice value of 10 or of the class
``SCHED_IDLE`` got half of a core, and one whose session's value was 19 got a hundredth. So both are
set. This module must not know workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

LAST = 19
"""The nice value of who comes last."""

_OWN_SESSION = Path("/proc/self/autogroup")


def come_last(session: Path = _OWN_SESSION) -> None:
    """Let this process, which leads its session, and all that it starts come after all others.

    To be called before there are threads. What the system does not let us do is left, with a line
    in the log.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (OSError, AttributeError) as exc:
        log.info("no_idle_class", kind=type(exc).__name__)
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, LAST)
    if not session.exists():
        return
    try:
        session.write_text(str(LAST))
    except OSError as exc:
        # Without privileges the kernel takes one such change in a tenth of a second.
        log.info("session_keeps_its_priority", kind=type(exc).__name__)


def fewer_threads() -> Mapping[str, str]:
    """Return what keeps native libraries of a process from the last core, which is for calls."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"OMP_NUM_THREADS": str(max(1, (cores or 1) - 1))}
