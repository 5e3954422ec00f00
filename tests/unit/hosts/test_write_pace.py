from __future__ import annotations

import pytest

from duologue.hosts.write_pace import AT_ONCE, GAP_S, WritePace


def write_whenever_it_may(pace: WritePace, start: float, seconds: float) -> list[float]:
    """Have something to say all the time; when it was written."""
    now, written = start, []
    while (now := max(now, pace.next_at)) < start + seconds:
        pace.wrote(now)
        written.append(now - start)
    return written


def test_some_writes_need_no_gap_and_then_there_is_one_after_each() -> None:
    written = write_whenever_it_may(WritePace(), 1000.0, 1.0)
    assert written[:AT_ONCE] == [0.0] * AT_ONCE
    assert len(written) == pytest.approx(1 / GAP_S, abs=AT_ONCE)
    steps = [b - a for a, b in zip(written[AT_ONCE:], written[AT_ONCE + 1 :], strict=False)]
    assert steps == pytest.approx([GAP_S] * len(steps), abs=1e-9)


def test_a_few_calls_never_wait() -> None:
    pace, now = WritePace(), 1000.0
    for _ in range(500):
        for _ in range(AT_ONCE):
            assert pace.next_at <= now
            pace.wrote(now)
        now += AT_ONCE * GAP_S


def test_silence_earns_no_more_than_that() -> None:
    pace = WritePace()
    write_whenever_it_may(pace, 1000.0, 1.0)
    written = write_whenever_it_may(pace, 5000.0, GAP_S / 2)
    assert len(written) == AT_ONCE
