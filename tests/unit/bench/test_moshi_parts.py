"""The parts of the benchmark that need no GPU to be tried, with a network that is tiny."""

from __future__ import annotations

import pytest

from bench.moshi_joins import joins
from bench.moshi_memory import cycles
from bench.moshi_setups import SMALL, engine_for, network_for
from duologue.engines.runners.streaming_lm.engine import FrameEngine
from duologue.engines.runners.streaming_lm.prepared import Costs
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def warm() -> tuple[FrameEngine, Costs]:
    return engine_for(SMALL, network_for(SMALL), (SMALL.sessions,))


def test_calls_that_have_ended_leave_all_pages(warm: tuple[FrameEngine, Costs]) -> None:
    engine, _ = warm
    (row,) = cycles(engine, SMALL, count=20, settled=10)
    assert row["pages_lost"] == row["allocated_growth_bytes"] == 0
    assert row["pages_before"] == engine.limits.pages.pages
    assert row["kept_pages_after_20"] > 0


def test_calls_come_one_after_the_other(warm: tuple[FrameEngine, Costs]) -> None:
    engine, costs = warm
    rows = list(joins(engine, costs, SMALL, others=(0,), starts=1, give_up_s=PATIENCE_S))
    assert [row["sessions"] for row in rows] == [0, 0]
    assert all(row["starts"] == 1 and not row["refused"] for row in rows)
    assert all(row["frames"] > 0 and row["start_max_ms"] > 0 for row in rows)
    assert engine.streams == 0
