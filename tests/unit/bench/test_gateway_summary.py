from __future__ import annotations

from typing import Any

import pytest
from gateway_summary import ECHO, OURS, PIPECAT, figures, kib_per_session, median_ratio, summary


def row(server: str, sessions: int, round_number: int, cpu_us: float, **more: Any) -> dict:
    return {
        "server": server,
        "sessions": sessions,
        "round": round_number,
        "cpu_us_per_session_s": cpu_us,
        "core_percent": 1.0,
        "p50_ms": 0.1,
        "p99_ms": 1.0,
        "p999_ms": 2.0,
        "max_ms": 3.0,
        "delivered_percent": 100.0,
        "loaded_kib": 1000.0,
        "own_loop_lag_ms": None,
        "generator_late_us": 10.0,
        **more,
    }


def test_a_ratio_is_taken_within_each_round() -> None:
    rows = [
        *(row(OURS, 200, r, cpu) for r, cpu in enumerate([100, 300, 900])),
        *(row(ECHO, 200, r, cpu) for r, cpu in enumerate([100, 200, 300])),
    ]
    assert median_ratio(rows, OURS, ECHO) == pytest.approx(1.5)


def test_a_round_that_one_server_missed_does_not_count() -> None:
    rows = [row(OURS, 200, 0, 100), row(ECHO, 200, 1, 10)]
    assert median_ratio(rows, OURS, ECHO) is None


def test_latency_comes_from_rounds_with_a_punctual_generator() -> None:
    rows = [
        row(OURS, 200, 0, 1, p99_ms=1.0),
        row(OURS, 200, 1, 1, p99_ms=50.0, generator_late_us=5000.0),
    ]
    (line,) = summary(rows, 200)
    assert line["p99_ms"] == 1.0
    assert line["timely_rounds"] == "1/2"


def test_memory_per_session_is_the_slope_over_the_counts() -> None:
    rows = [row(OURS, n, 0, 1, loaded_kib=40_000 + 25 * n) for n in (20, 200, 600)]
    assert kib_per_session(rows, OURS) == pytest.approx(25.0)
    assert kib_per_session(rows[:1], OURS) is None


def test_the_result_is_judged_by_the_worst_of_the_large_counts() -> None:
    rows = [
        *(row(ECHO, n, 0, 100, p99_ms=1.0) for n in (30, 200, 600)),
        row(OURS, 30, 0, 300),
        row(OURS, 200, 0, 120),
        row(OURS, 600, 0, 110, p99_ms=3.5, max_ms=7.0),
        row(PIPECAT, 30, 0, 1800),
    ]
    stated = figures(rows, [], [30, 200, 600])
    assert stated["n"] == 600
    assert stated["ratio_to_echo"] == 1.2
    assert stated["pipecat_to_ours"] == 6.0
    assert stated["loop_lag_max_ms"] == 7.0
    assert stated["echo_p99_over_bare_ms"] == 2.5
