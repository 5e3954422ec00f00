"""CPU time and memory of a process with all its children, read from /proc."""

import os
import time
from pathlib import Path


def pids(root: int) -> list[int]:
    """The process and everything below it that is alive now."""
    found = [root]
    for task in _tasks(root):
        try:
            children = Path(f"/proc/{root}/task/{task}/children").read_text().split()
        except FileNotFoundError:
            continue
        for child in children:
            found += pids(int(child))
    return found


def cpu_s(root: int) -> float:
    """User and kernel seconds that the tree's threads, living and ended, have used.

    Read from each process's CPU clock: the figure behind utime and stime of /proc/PID/stat, in
    nanoseconds instead of ticks of 10 ms. Children that ended between two readings are missed.
    """
    total_ns = 0
    for pid in pids(root):
        try:
            total_ns += time.clock_gettime_ns(_cpu_clock(pid))
        except OSError:
            continue
    return total_ns / 1e9


def resident_kib(root: int) -> int:
    """Resident memory of the tree; pages that processes share count once for each."""
    total = 0
    for pid in pids(root):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except FileNotFoundError:
            continue
        total += sum(int(line.split()[1]) for line in status.splitlines() if "VmRSS:" in line)
    return total


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def _cpu_clock(pid: int) -> int:
    # CPUCLOCK_SCHED of the whole process: what clock_getcpuclockid(3) returns, which the
    # standard library has for threads only.
    return (~pid << 3) | 2
