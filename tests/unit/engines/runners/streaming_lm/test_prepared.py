"""What steps cost, as the plan of the groups reads it."""

from __future__ import annotations

from itertools import count

import pytest

from duologue.engines.runners.streaming_lm.prepared import Costs
from tests.unit.engines.runners.streaming_lm.tiny_network import engine

pytestmark = pytest.mark.torch


def test_a_step_costs_what_its_bucket_costs_and_more_rows_never_less() -> None:
    costs = Costs({2: 0.02, 4: 0.015, 8: 0.03}, {}, 10)
    assert [costs.of_frame(rows) for rows in (1, 2, 3, 4, 5, 8)] == [0.02] * 4 + [0.03] * 2


def test_a_prefill_costs_more_the_more_it_sees() -> None:
    costs = Costs({}, {4: (0.01, 0.03)}, 100)
    got = [costs.of_prefill(4, at) for at in (0, 50, 100, 900)]
    assert got == pytest.approx([0.01, 0.02, 0.03, 0.03])


def test_everything_that_was_prepared_is_timed() -> None:
    one = engine(buckets=(1, 4))
    ticks = count()
    costs = one.measure(lambda: float(next(ticks)))
    assert costs.frames == {1: 1.0, 4: 1.0}
    assert costs.prefills == {4: (1.0, 1.0), 16: (1.0, 1.0)}
