"""The clock of this machine."""

from __future__ import annotations

import time

from duologue.core.clock import SystemClock


def test_now_is_the_clock_that_timers_of_the_loop_use() -> None:
    before = time.monotonic()
    now = SystemClock().now()
    assert before <= now <= time.monotonic()


def test_wall_time_counts_from_1970() -> None:
    before = time.time()
    wall_time = SystemClock().wall_time()
    assert before <= wall_time <= time.time()


def test_cpu_time_grows_with_work_done_here() -> None:
    clock = SystemClock()
    start = clock.cpu_time()
    while clock.cpu_time() == start:
        sum(range(1000))
    assert clock.cpu_time() > start
