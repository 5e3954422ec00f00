"""Lets a worker's process have a small part of the cores where others want them.

A worker leads a session of its own, and where the kernel shares the cores first between sessions
(autogroups, as on most machines), a process's nice value, or the class ``SCHED_IDLE``, says nothing
to processes of other sessions: beside a normal one it got half of a core. The session's own value
does. So both are set, to a tenth of what a normal one gets: with less, nothing would ever come of
it on a machine that is full. This module must not know workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

NICENESS = 10
"""A tenth of the weight of a normal process, or session."""

_OWN_SESSION = Path("/proc/self/autogroup")
_OWN_THREADS = Path("/proc/self/task")


def yield_cores(session: Path = _OWN_SESSION) -> None:
    """Let this process, which leads its session, with all its threads, come after others.

    What the system does not let us do is left, with a line in the log.
    """
    threads = [int(each.name) for each in _OWN_THREADS.iterdir()] if _OWN_THREADS.exists() else [0]
    for thread in threads:
        with suppress(OSError):  # it has ended, or is as nice already
            os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
    if not session.exists():
        return
    try:
        session.write_text(str(NICENESS))
    except OSError as exc:
        # Without privileges the kernel takes one such change in a tenth of a second.
        log.info("session_keeps_its_priority", kind=type(exc).__name__)


def fewer_threads() -> Mapping[str, str]:
    """Return what keeps native libraries of a process from the last core, which is for calls."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"OMP_NUM_THREADS": str(max(1, (cores or 1) - 1))}
